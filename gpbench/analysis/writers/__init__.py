"""Writers of tables: a sheet as text for a terminal, Markdown, LaTeX and HTML."""
