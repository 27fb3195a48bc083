// Search from disk: the search of Material runs in a Worker, which browsers refuse to a page that is opened as a file.
// There this class takes its place.  It runs the script in a hidden iframe and passes messages as events.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside.importScripts = async (...urls) => { for (const each of urls) await this.load(each) }
      this.ready = this.load(url)
    }

    load(url) {
      const script = this.inside.document.createElement("script")
      script.src = new URL(url, location)
      return new Promise((resolve, reject) => {
        script.onload = resolve
        script.onerror = reject
        this.inside.document.head.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })))
    }
  }
