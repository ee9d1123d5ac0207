// A browser refuses workers to a page that was opened from a disk. There the script of a worker
// runs in a hidden frame. The site generator knows this file by its name, and loads no other one.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      const script = inside.document.createElement("script");
      script.src = new URL(address, location.href).href;
      const loaded = new Promise((resolve) => (script.onload = resolve));
      // As between threads: a message is a copy, and arrives after the current task.
      const send = (receiver, data) => {
        const message = new MessageEvent("message", { data: structuredClone(data) });
        setTimeout(() => {
          receiver.dispatchEvent(message);
          if (receiver === this && this.onmessage) this.onmessage(message);
        });
      };
      inside.postMessage = (data) => send(this, data);
      this.postMessage = (data) => loaded.then(() => send(inside, data));
      this.terminate = () => frame.remove();
      inside.document.body.appendChild(script);
    }
  };
}
