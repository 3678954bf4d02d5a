// Search in pages opened from the disk, where browsers start no Worker: its script runs in a hidden frame.
if (location.protocol === "file:") window.Worker = class extends EventTarget {
  constructor(url) {
    super()
    this.frame = Object.assign(document.createElement("iframe"), { hidden: true })
    window.addEventListener("message", event => {
      if (event.source === this.frame.contentWindow) this.dispatchEvent(new MessageEvent("message", { data: event.data }))
    })
    this.loaded = new Promise(resolve => (this.frame.onload = resolve))
    const [quoted, open, close] = [url.replaceAll('"', "%22"), "<script", "</script>"]
    this.frame.srcdoc = `${open}>postMessage = data => parent.dispatchEvent(new MessageEvent("message", ` +
      `{ data, source: window }))${close}${open} src="${quoted}">${close}`
    document.addEventListener("DOMContentLoaded", () => document.body.append(this.frame))
    if (document.body) document.body.append(this.frame)
  }
  postMessage(data) {
    this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })))
  }
  terminate() { this.frame.remove() }
}
