// How Debian's Chromium is started by tests and benchmarks of pages: the one without windows, which takes two thirds of the
// processor time of the whole browser.

export const chromiumOptions = {
  executablePath: '/usr/bin/chromium-headless-shell',
  args: [
    // As root it has no sandbox of its own.
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
}
