// Terminals in real units of both classes, with the SDK.

import { beforeAll, describe, expect, it } from 'vitest'
import { Berth as Client, type Terminal, type Unit } from '../../packages/sdk/src/index.ts'
import { createUnit } from '../support/berth-units.ts'
import { usualClasses } from '../support/part-of.ts'
import { useBerth } from '../support/use-berth.ts'

const berth = useBerth(null)

/** Reads until the text appears and keeps what follows it. */
function reader(terminal: Terminal) {
  const output = terminal.output[Symbol.asyncIterator]()
  let shown = ''
  return {
    until: async (text: string): Promise<void> => {
      while (!shown.includes(text)) {
        const { done, value } = await output.next()
        if (done) throw new Error(`it ended before "${text}" was printed: ${shown}`)
        shown += new TextDecoder().decode((value as { bytes: Uint8Array }).bytes)
      }
      shown = shown.slice(shown.indexOf(text) + text.length)
    },
  }
}

describe.each(usualClasses)('with %s, a terminal', (isolation) => {
  let unit: Unit
  beforeAll(async () => {
    await berth.start({ BERTH_ISOLATION: isolation })
    const { id } = await createUnit(berth, {
      name: `${isolation}-shell`,
      image: 'berth.local/debian:12',
      cmd: ['sleep', 'infinity'],
    })
    const { baseUrl: url, apiKey } = berth.credentials
    unit = await new Client({ url, apiKey }).units.get(id)
  })

  it('runs a shell with a size, can be resized, and returns the exit code of the shell', async () => {
    const terminal = await unit.terminal({ columns: 90, rows: 20 })
    const output = reader(terminal)
    terminal.write('stty size; echo fir""st\r')
    await output.until('20 90')
    await output.until('first')
    terminal.resize(91, 21)
    terminal.write('stty size; echo seco""nd\r')
    await output.until('21 91')
    await output.until('second')
    terminal.write('exit 7\r')
    expect(await terminal.wait()).toEqual({ exitCode: 7, timedOut: false })
  })

  it('without a TTY forwards bytes unchanged until the end of input', async () => {
    const terminal = await unit.terminal({ tty: false, command: ['wc', '-c'] })
    for (let part = 0; part < 64; part += 1) terminal.write(new Uint8Array(65_536).fill(part))
    terminal.end()
    await reader(terminal).until(String(64 * 65_536))
    expect(await terminal.wait()).toEqual({ exitCode: 0, timedOut: false })
  })

  it('with a session goes on without a client, forgets the oldest output, and is attached to again', async () => {
    const first = await unit.terminal({ session: 'main' })
    first.write('X=kept; echo rea""dy; read -r line; seq 200000; touch /tmp/printed\r')
    await reader(first).until('ready')
    first.write('go\r')
    first.close()
    const isDone = async () => (await unit.exec('[ -e /tmp/printed ]')).exitCode
    await expect.poll(isDone, { timeout: 60_000 }).toBe(0)
    const second = await unit.terminal({ session: 'main' })
    const output = reader(second)
    await output.until('\r\n199999\r\n200000\r\n')
    second.write('echo is $X; exit 5\r')
    await output.until('is kept')
    expect(await second.wait()).toEqual({ exitCode: 5, timedOut: false })
  })

  it('ends its command when the client closes it', async () => {
    const terminal = await unit.terminal({ command: ['sh', '-c', 'echo at $$; exec sleep 4242'] })
    await reader(terminal).until('at ')
    terminal.close()
    const running = async () =>
      (await unit.exec(['sh', '-c', 'ps -o args | grep -c "[s]leep 4242"'])).stdout.trim()
    await expect.poll(running, { timeout: 30_000 }).toBe('0')
  })
})
