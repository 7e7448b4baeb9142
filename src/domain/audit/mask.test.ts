import fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'
import { maskCommand, maskText, namesOf, sizesOf } from './mask.ts'

const SECRET = 'c4nary-S3cret_x'

const hidden: Record<string, string[]> = {
  'an option with =': ['tool', `--password=${SECRET}`],
  'an option and its value': ['tool', '--password', SECRET],
  'an option of another word': ['tool', '--api-key', SECRET],
  'an option within a longer name': ['tool', `--db-admin-password=${SECRET}`],
  'a short password': ['mysql', '-uroot', `-p${SECRET}`],
  'a short password in a shell line': ['sh', '-c', `mysql -uroot -p${SECRET} shop`],
  'a quoted password in a shell line': ['sh', '-c', `mysql --password "${SECRET} two" shop`],
  'an environment prefix': ['sh', '-c', `PGPASSWORD=${SECRET} psql -h db`],
  'an argument of env': ['env', `MYSQL_ROOT_PASSWORD=${SECRET}`, 'run'],
  'a quoted environment prefix': ['sh', '-c', `API_TOKEN='${SECRET}' ./run`],
  'the password of a URL': ['psql', `postgres://app:${SECRET}@db.internal:5432/shop`],
  'the password of a URL, with an @ in it': ['psql', `postgres://app:x@${SECRET}@db/shop`],
  'a URL without a user': ['redis-cli', '-u', `redis://:${SECRET}@cache:6379`],
  'an Authorization header': ['curl', '-H', `Authorization: Bearer ${SECRET}`, 'http://x'],
  'a basic Authorization header': ['curl', '-H', `authorization: Basic ${SECRET}==`],
  'a header that is a key': ['curl', '-H', `X-Api-Key: ${SECRET}`],
  'an Authorization header of another scheme': ['curl', '-H', `Authorization: ApiKey ${SECRET}`],
  'an Authorization header in JSON': ['node', '-e', `f({"Authorization": "Key ${SECRET}"})`],
  'a cookie': ['curl', '-H', `Cookie: theme=dark; sid=${SECRET}`],
  'the password of a tool behind another': ['sudo', '-n', 'redis-cli', '-a', SECRET],
  'the password of a tool in a shell line': ['sh', '-c', `cd /x && mongodump -u app -p ${SECRET} --gzip`],
  'the user of curl': ['curl', '-u', `app:${SECRET}`, 'http://x'],
  'the user of curl in a shell line': ['sh', '-c', `curl -u app:${SECRET} http://x`],
  'the user of any tool': ['rclone', '-u', `app:${SECRET}`],
  'the user of any tool in quotes': ['sh', '-c', `davpush --user "app:${SECRET} two" x`],
  'the user of any tool without a space': ['sh', '-c', `curl -uapp:${SECRET} http://x`],
  'a token that curl takes for a user': ['sh', '-c', `curl -u ${SECRET}${SECRET}: http://x`],
  'a setting of aws': ['aws', 'configure', 'set', 'aws_secret_access_key', SECRET],
  'a setting of aws in a shell line': ['sh', '-c', `aws configure set aws_secret_access_key ${SECRET}`],
  'a password for htpasswd': ['htpasswd', '-bc', '/etc/users', 'app', SECRET],
  'a password for htpasswd in a shell line': ['sh', '-c', `htpasswd -nb app '${SECRET};x' > users`],
  'a token as the user of a URL': ['git', 'clone', `https://${SECRET}@github.com/a/b`],
  'a token as the user of a URL with a password': [
    'git',
    'clone',
    `https://${SECRET}${SECRET}:x@github.com/a`,
  ],
  'a quote that is not closed': ['sh', '-c', `mysql --password="${SECRET} two`],
  'a JSON body': ['curl', '-d', `{"password":"${SECRET}"}`],
  'the password of redis': ['redis-cli', '-a', SECRET, 'PING'],
  'the password of sshpass': ['/usr/bin/sshpass', '-p', SECRET, 'ssh', 'host'],
  'a password in SQL': ['psql', '-c', `alter user app password '${SECRET}'`],
  'a password in MySQL': ['mysql', '-e', `CREATE USER a IDENTIFIED BY '${SECRET}'`],
}

describe('maskCommand (spec 2.12) hides', () => {
  test.each(Object.entries(hidden))('%s', (_title, argv) => {
    const masked = maskCommand(argv)
    expect(JSON.stringify(masked)).not.toContain(SECRET)
    expect(JSON.stringify(masked)).toContain('***')
    expect(masked[0]).toBe(argv[0])
  })

  test('an API key of Berth anywhere in a text', () => {
    const key = `berth_live_0123456789ab_${'k'.repeat(43)}`
    expect(maskText(`curl -H "x: ${key}" http://x`)).not.toContain('kkk')
  })
})

test('maskCommand leaves a command without a password unchanged', () => {
  for (const argv of [
    ['python', 'main.py', '--verbose'],
    // Names that every JavaScript object has are commands like any other.
    ['toString', ''],
    ['__proto__', 'x'],
    ['sh', '-c', 'echo hello && ls -la /tmp'],
    ['node', '-e', 'console.log(1 + 1)'],
    ['curl', 'https://example.com/path?query=1'],
    ['curl', 'https://example.com/@user'],
    ['git', 'clone', 'ssh://git@github.com/a/b'],
    ['sqlmap', '-u', 'http://example.com/x'],
  ]) {
    expect(maskCommand(argv)).toEqual(argv)
  }
})

test('maskCommand never lets an alphanumeric secret in a known place through', () => {
  const secret = fc.stringMatching(/^[A-Za-z0-9]{12,40}$/)
  const places: ((secret: string) => string[])[] = [
    (s) => ['x', `--password=${s}`],
    (s) => ['x', '--token', s],
    (s) => ['sh', '-c', `A=1 DB_PASSWORD=${s} run --flag`],
    (s) => ['x', `https://user:${s}@host/path`],
    (s) => ['sh', '-c', `mysql -p${s}`],
    (s) => ['curl', '-H', `Authorization: Bearer ${s}`],
  ]
  fc.assert(
    fc.property(secret, fc.constantFrom(...places), (value, place) => {
      expect(JSON.stringify(maskCommand(place(value)))).not.toContain(value)
    }),
  )
})

test('maskCommand limits the length of a command, and cuts only after masking', () => {
  const masked = maskCommand(['sh', '-c', `${'a'.repeat(1990)} --password=${SECRET}`, 'more'])
  expect(masked.join('').length).toBeLessThan(2100)
  expect(masked.join('')).not.toContain('c4nary')
})

test.each([
  ['an option', (secret: string) => ` --password=${secret}`],
  ['an option in quotes', (secret: string) => ` --password "${secret}"`],
  ['a URL', (secret: string) => ` postgres://app:${secret}@db/shop`],
  ['a token as the user of a URL', (secret: string) => ` https://${secret}@db/shop`],
  ['a user', (secret: string) => ` -u app:${secret}`],
  ['a header', (secret: string) => ` -H "Authorization: ApiKey ${secret}"`],
])('maskCommand hides the password of %s that lies across the cut', (_title, write) => {
  // The second one is longer than any margin.
  for (const secret of [SECRET.repeat(3), 'c4nary'.repeat(1000)]) {
    for (let filled = 1800; filled < 2600; filled += 1) {
      const masked = maskCommand(['sh', '-c', `${'a'.repeat(filled)}${write(secret)}`])
      expect(masked.join(' ')).not.toContain('c4nary')
    }
  }
})

test('maskCommand cuts a command to well-formed text', () => {
  for (const filled of [1995, 1996]) {
    const masked = maskCommand(['sh', '-c', 'a'.repeat(filled) + '🙂'.repeat(500)])
    expect(masked.every((argument) => argument.isWellFormed())).toBe(true)
  }
})

test.each([
  ['dashes and options', '-p-----'],
  ['letters', 'a'],
  ['URL beginnings', '://'],
  ['quotes', 'password="'],
  ['words', 'pass'],
  ['what is hidden anyway', '-p x '],
])(
  'maskCommand matches its patterns only against the part of a long command of %s that it keeps',
  (_title, piece) => {
    const longest = piece.repeat(32_768 / piece.length)
    const replace = vi.spyOn(String.prototype, 'replace')
    const find = vi.spyOn(RegExp.prototype, 'test')
    for (const count of [1, 60, 1024]) maskCommand(Array<string>(count).fill(longest))
    const read = [
      ...replace.mock.contexts.map((text) => String(text).length),
      ...find.mock.calls.map(([text]) => text.length),
    ]
    vi.restoreAllMocks()
    expect(Math.max(...read)).toBeLessThanOrEqual(2500)
    // About twenty patterns read each of the three commands once.
    expect(read.reduce((sum, length) => sum + length, 0)).toBeLessThan(3 * 20 * 2600)
  },
)

test('an environment is recorded by its names, and files by their sizes', () => {
  expect(namesOf({ B: 'secret', A: { secret: 'X', value: 'y' } })).toEqual(['A', 'B'])
  expect(sizesOf({ '/a': 'häß', '/b': { base64: 'AAEC' } })).toEqual([
    { path: '/a', bytes: 5 },
    { path: '/b', bytes: 3 },
  ])
})
