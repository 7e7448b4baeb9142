// A server of a host itself, of which no machine may get an answer: on this machine, or on another one, which has a network
// namespace of its own.

import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** Says where it listens, and ends with its input. */
const PROGRAM = `
const server = require('node:net').createServer((socket) => socket.end('hello\\n'))
server.listen(0, '0.0.0.0', () => {
  const all = Object.values(require('node:os').networkInterfaces()).flat()
  const addresses = all.flatMap(({ family, address }) => (family === 'IPv4' ? [address] : []))
  console.log(JSON.stringify({ port: server.address().port, addresses }))
})
process.stdin.on('end', () => process.exit()).resume()
`

export type HostListener = {
  port: number
  /** All that the host has, but for loopback, which is a machine's own. */
  addresses: string[]
  close: () => Promise<void>
}

/** `network`: the path of the host's network namespace; null for this one. */
export async function listenOnHost(network: string | null): Promise<HostListener> {
  const enter = network === null ? [] : ['nsenter', `--net=${network}`]
  const [file, ...args] = [...enter, process.execPath, '-e', PROGRAM]
  const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const said = (await Promise.race([once(child.stdout, 'data'), ended])) as unknown[]
  const { port, addresses } = JSON.parse(String(said[0])) as { port: number; addresses: string[] }
  return {
    port,
    addresses: addresses.filter((address) => !address.startsWith('127.')),
    close: async () => {
      child.stdin.end()
      await ended
    },
  }
}
