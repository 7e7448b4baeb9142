// How Debian's Chromium is started by tests and benchmarks of pages.

export const chromiumOptions = {
  executablePath: '/usr/bin/chromium',
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
