// The addresses Berth listens on, looked at before anything starts: a taken port is the commonest thing to
// go wrong, and should be said in one sentence.

import { type Address, type Config, httpUrl } from '../config.ts'
import { freePort, isPortTaken, tryListening } from '../lib/free-port.ts'

const listeners = [
  ['apiAddress', 'BERTH_API_ADDRESS'],
  ['gatewayHttp', 'BERTH_GATEWAY_HTTP'],
  ['gatewayTls', 'BERTH_GATEWAY_TLS'],
  ['gatewayMysql', 'BERTH_GATEWAY_MYSQL'],
  ['metrics', 'BERTH_METRICS'],
  ['gatewayMetrics', 'BERTH_GATEWAY_METRICS'],
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

/** The address with a real port; throws the sentence when it cannot be listened on. */
async function freeAddress({ host, port }: Address, variable: string): Promise<Address> {
  try {
    if (port === 0) return { host, port: await freePort(host) }
    await tryListening(host, port)
    return { host, port }
  } catch (cause) {
    throw new Error(sentence({ host, port }, variable, cause), { cause })
  }
}

function sentence({ host, port }: Address, variable: string, cause: unknown): string {
  if (isPortTaken(cause)) {
    return `${host}:${port} is taken by another program: stop it ("ss -ltnp" tells which), or set ${variable} to another address.`
  }
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `${host} is no address of this machine: set ${variable} to one that is.`
  }
  return `${host}:${port} cannot be listened on (${String(code ?? cause)}): set ${variable} to another address.`
}
