// The addresses Berth listens on, looked at before anything starts: a taken port is the commonest thing to
// go wrong, and should be said in one sentence.

import { once } from 'node:events'
import { createServer } from 'node:net'
import { type Address, type Config, httpUrl } from '../config.ts'

const listeners = [
  ['apiAddress', 'BERTH_API_ADDRESS'],
  ['gatewayHttp', 'BERTH_GATEWAY_HTTP'],
  ['gatewayTls', 'BERTH_GATEWAY_TLS'],
  ['gatewayMysql', 'BERTH_GATEWAY_MYSQL'],
] as const satisfies [keyof Config, string][]

/**
 * The configuration with a real port wherever it says 0, so that a restarted process comes back on the same
 * one. Throws a sentence that names the variable when an address cannot be listened on.
 */
export async function claimPorts(config: Config): Promise<Config> {
  const claimed = { ...config }
  for (const [key, variable] of listeners) claimed[key] = await freeAddress(config[key], variable)
  // The default of BERTH_PUBLIC_URL is the address of the API, which is known only now.
  const isDefault = config.publicUrl === httpUrl(config.apiAddress)
  return isDefault ? { ...claimed, publicUrl: httpUrl(claimed.apiAddress) } : claimed
}

/** The address with the port the kernel gave; the sentence when it gave none. */
export async function freeAddress(address: Address, variable: string): Promise<Address> {
  const server = createServer()
  try {
    server.listen(address.port, address.host)
    await once(server, 'listening')
    const bound = server.address()
    return { ...address, port: typeof bound === 'object' && bound ? bound.port : address.port }
  } catch (cause) {
    throw new Error(sentence(address, variable, cause), { cause })
  } finally {
    server.close()
  }
}

function sentence({ host, port }: Address, variable: string, cause: unknown): string {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'EADDRINUSE') {
    return `${host}:${port} is taken by another program: stop it ("ss -ltnp" tells which), or set ${variable} to another address.`
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `${host} is no address of this machine: set ${variable} to one that is.`
  }
  return `${host}:${port} cannot be listened on (${String(code ?? cause)}): set ${variable} to another address.`
}
