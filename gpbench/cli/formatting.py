"""Help texts of verbs in lines that fit the terminal."""

import argparse

from gpbench.analysis.printing import fitted


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Descriptions and epilogs with their line ends, and with lines no longer than those of the options."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return "\n".join(piece for line in text.splitlines() for piece in fitted(indent + line, width)) + "\n"
