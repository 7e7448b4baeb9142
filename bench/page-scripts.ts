// What a benchmark of the dashboard runs in the page, as text: this project's types know no browser's.

const watch = `
  globalThis.berthBench = { paint: 0, shift: 0 }
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) berthBench.shift += entry.value
  }).observe({ type: 'layout-shift', buffered: true })
  new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) berthBench.paint = entry.startTime
  }).observe({ type: 'largest-contentful-paint', buffered: true })

  // When the list is the dashboard's own, and not what the server put into the page.
  berthBench.drawn = async () => {
    while (document.getElementById('first') !== null || document.querySelector('[data-at]') === null)
      await new Promise(requestAnimationFrame)
    return performance.now()
  }

  // When a row that has both words is in a frame that was painted.
  berthBench.shown = async (selector, name, word) => {
    const isShown = () => [...document.querySelectorAll(selector)].some((row) =>
      row.textContent.includes(name) && row.textContent.includes(word))
    if (!isShown()) await new Promise((resolve) => {
      const observer = new MutationObserver(() => {
        if (!isShown()) return
        observer.disconnect()
        resolve()
      })
      observer.observe(document.body, { subtree: true, childList: true, characterData: true })
    })
    await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))
    return Date.now()
  }

  // The sockets of the page, to see when bytes come.
  const sockets = []
  const Plain = WebSocket
  globalThis.WebSocket = class extends Plain {
    constructor(...args) {
      super(...args)
      sockets.push(this)
    }
  }
  const next = (target, event) =>
    new Promise((resolve) => target.addEventListener(event, resolve, { once: true, capture: true }))

  berthBench.echoed = async () => {
    const rows = document.querySelector('.xterm-rows')
    const shown = new Promise((resolve) => {
      const observer = new MutationObserver(() => {
        observer.disconnect()
        resolve(performance.now())
      })
      observer.observe(rows, { subtree: true, childList: true, characterData: true })
    })
    const message = next(sockets.at(-1), 'message').then(() => performance.now())
    await next(document, 'keydown')
    const pressed = performance.now()
    return { message: (await message) - pressed, shown: (await shown) - pressed }
  }

  berthBench.scroll = async (frames, step) => {
    const scroller = document.querySelector('[role=table]').parentElement
    scroller.scrollTop = 0
    for (let frame = 0; frame < frames; frame += 1) {
      scroller.scrollTop += step
      await new Promise(requestAnimationFrame)
    }
  }
`

export const pageScripts = { watch } as const
