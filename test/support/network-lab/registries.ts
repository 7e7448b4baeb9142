// What a host answers that is the registry of every client at once: each gets as much as it needs to print `1.2.3` of the
// package `thing`, or the head of a repository.

export type Answer = { status: number; headers: Record<string, string>; body: string }

/** What clients send in place of the secret. */
export const PLACEHOLDER = 'berth_secret_0123456789abcdef'
/** As printed by `git ls-remote`. */
export const COMMIT = '0123456789abcdef0123456789abcdef01234567'

const answers: Record<string, [type: string, body: unknown]> = {
  '/simple/thing/': ['text/html', '<a href="thing-1.2.3-py3-none-any.whl">thing-1.2.3-py3-none-any.whl</a>'],
  '/thing': [
    'application/json',
    {
      name: 'thing',
      'dist-tags': { latest: '1.2.3' },
      versions: { '1.2.3': { name: 'thing', version: '1.2.3' } },
    },
  ],
  '/thing.js': ['application/javascript', `console.log('1.2.3')`],
  '/go/example.com/thing/@v/list': ['text/plain', 'v1.2.3\n'],
  // Go from 1.21 reads which versions the newest one retracts, and lists nothing where it cannot.
  '/go/example.com/thing/@v/v1.2.3.info': ['application/json', { Version: 'v1.2.3' }],
  '/go/example.com/thing/@v/v1.2.3.mod': ['text/plain', 'module example.com/thing\n'],
  '/page': [
    'text/html',
    `<body><script>
      const ask = new XMLHttpRequest()
      ask.open('GET', '/thing', false)
      ask.setRequestHeader('x-key', '${PLACEHOLDER}')
      ask.send()
      document.body.textContent = ask.responseText
    </script></body>`,
  ],
  '/index/config.json': [
    'application/json',
    {
      dl: 'https://api.example.com/crates',
      api: 'https://api.example.com',
      'auth-required': true,
    },
  ],
  '/api/v1/crates': [
    'application/json',
    { crates: [{ name: 'thing', max_version: '1.2.3', description: 'a thing' }], meta: { total: 1 } },
  ],
  '/repository.git/info/refs': ['text/plain', `${COMMIT}\trefs/heads/main\n`],
  '/repository.git/HEAD': ['text/plain', 'ref: refs/heads/main\n'],
}

/** Returns null for a path that is no registry's. Git and Cargo send what they have only when they are asked. */
export function answerOf(url: string, authorization: string | undefined): Answer | null {
  const path = url.split('?')[0] ?? ''
  const found = answers[path]
  if (!found) return null
  const asks = /^\/(?:repository\.git|index|api)\//.test(path)
  if (asks && authorization === undefined) {
    const challenge = path.startsWith('/repository.git/')
      ? 'Basic realm="git"'
      : 'Cargo login_url="https://x"'
    return { status: 401, headers: { 'www-authenticate': challenge }, body: '' }
  }
  const [type, body] = found
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return { status: 200, headers: { 'content-type': type }, body: text }
}
