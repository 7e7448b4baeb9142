import { expect, test } from 'vitest'
import type { Suite } from '../suite.ts'

export function environmentClaims(suite: Suite): void {
  const values = {
    NEWLINES: 'one\ntwo\n',
    QUOTES: `it's "quoted" \\ $HOME \`id\``,
    UNICODE: 'héllo ✓ 船',
    EMPTY: '',
    EQUALS: 'a=b=c',
    LONG: 'x'.repeat(32_768),
  }
  const machine = suite.shared({ hostname: 'web-1', env: values })

  test('values of the environment arrive as they were given', async () => {
    for (const [name, value] of Object.entries(values)) {
      expect((await suite.exec(machine(), ['printenv', name])).stdout).toBe(`${value}\n`)
    }
  })

  test("the image's own environment is there, and the caller's goes over it", async () => {
    const { name, value } = suite.options.imageEnv
    expect((await suite.exec(machine(), ['printenv', name])).stdout).toBe(`${value}\n`)
    const other = await suite.running({ env: { [name]: 'mine' } })
    expect((await suite.exec(other, ['printenv', name])).stdout).toBe('mine\n')
  })

  test('the first process sees the environment too', async () => {
    const ref = await suite.running({ env: { GREETING: 'hi there' }, cmd: ['printenv', 'GREETING'] })
    expect(await suite.logged(ref.id, 1)).toMatchObject([{ stream: 'stdout', text: 'hi there' }])
  })

  test('it has the host name it was given', async () => {
    expect((await suite.exec(machine(), ['hostname'])).stdout).toBe('web-1\n')
  })

  test('commands run in the working directory of the image', async () => {
    expect((await suite.exec(machine(), ['pwd'])).stdout).toBe('/\n')
  })

  test("an entrypoint of the caller's drops the image's command", async () => {
    const ref = await suite.running({ entrypoint: ['echo', 'from', 'entrypoint'], cmd: null })
    expect(await suite.logged(ref.id, 1)).toMatchObject([{ text: 'from entrypoint' }])
  })

  test('no environment of the host is seen inside', async () => {
    process.env['BERTH_TEST_CANARY'] = 'on the host'
    const ref = await suite.running()
    expect(await suite.exec(ref, ['printenv', 'BERTH_TEST_CANARY'])).toMatchObject({
      exitCode: 1,
      stdout: '',
    })
    delete process.env['BERTH_TEST_CANARY']
  })
}
