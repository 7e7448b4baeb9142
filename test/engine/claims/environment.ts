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

  test('values of environment variables are passed unchanged', async () => {
    for (const [name, value] of Object.entries(values)) {
      expect((await suite.exec(machine(), ['printenv', name])).stdout).toBe(`${value}\n`)
    }
  })

  test('the environment contains the image’s variables, overridden by the caller’s', async () => {
    const { name, value } = suite.options.imageEnv
    expect((await suite.exec(machine(), ['printenv', name])).stdout).toBe(`${value}\n`)
    const other = await suite.running({ env: { [name]: 'mine' } })
    expect((await suite.exec(other, ['printenv', name])).stdout).toBe('mine\n')
  })

  test('the first process gets the environment too', async () => {
    const ref = await suite.running({ env: { GREETING: 'hi there' }, cmd: ['printenv', 'GREETING'] })
    expect(await suite.logged(ref.id, 1)).toMatchObject([{ stream: 'stdout', text: 'hi there' }])
  })

  test('a machine has the host name it was given', async () => {
    expect((await suite.exec(machine(), ['hostname'])).stdout).toBe('web-1\n')
  })

  test('the image’s working directory, user and environment apply to the first process and to commands', async () => {
    const idle = { entrypoint: ['sleep', 'infinity'], cmd: [] }
    const ref = await suite.running(idle, { imageDigest: suite.configuredImage() })
    expect((await suite.sh(ref, 'pwd; id -u; printenv FROM_IMAGE')).stdout).toBe('/srv\n1\nyes\n')
    const saying = { entrypoint: ['sh', '-c', 'pwd; id -u; printenv FROM_IMAGE'], cmd: [] }
    const other = await suite.running(saying, { imageDigest: suite.configuredImage() })
    expect((await suite.logged(other.id, 3)).map((line) => line.text)).toEqual(['/srv', '1', 'yes'])
  })

  test('the entrypoint and command are the image’s unless the caller gives others', async () => {
    const given: [entrypoint: string[] | null, cmd: string[] | null, says: string][] = [
      [null, null, 'entry point'],
      [null, ['other'], 'entry other'],
      [['echo'], ['mine'], 'mine'],
      [['echo', 'alone'], null, 'alone'],
    ]
    for (const [entrypoint, cmd, says] of given) {
      const ref = await suite.running({ entrypoint, cmd }, { imageDigest: suite.configuredImage() })
      expect((await suite.logged(ref.id, 1)).map((line) => line.text)).toEqual([says])
    }
  })

  test('commands run in / if the image has no working directory', async () => {
    expect((await suite.exec(machine(), ['pwd'])).stdout).toBe('/\n')
  })

  test('environment variables of the host are not visible in a machine', async () => {
    process.env['BERTH_TEST_CANARY'] = 'on the host'
    const ref = await suite.running()
    expect(await suite.exec(ref, ['printenv', 'BERTH_TEST_CANARY'])).toMatchObject({
      exitCode: 1,
      stdout: '',
    })
    delete process.env['BERTH_TEST_CANARY']
  })
}
