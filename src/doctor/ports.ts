// Checks the addresses that Berth listens on before anything starts, because a taken port is the most common error
// and deserves a clear message.

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

const ofServer: (typeof listeners)[number][0][] = ['apiAddress', 'metrics']

/** Which of them a machine has. */
export function listensAt({ role }: Pick<Config, 'role'>, key: (typeof listeners)[number][0]): boolean {
  return role === 'all' || (role === 'server') === ofServer.includes(key)
}

/**
 * Returns the configuration with a real port in place of each 0, so that a restarted process uses the same port.
 * Throws a sentence that names the variable if Berth cannot listen on an address.
 */
export async function claimPorts(config: Config): Promise<Config> {
  const claimed = { ...config }
  for (const [key, variable] of listeners)
    if (listensAt(config, key)) claimed[key] = await freeAddress(config[key], variable)
  const { engineTls } = config
  if (engineTls) claimed.engineTls = { ...engineTls, ...(await freeAddress(engineTls, 'BERTH_ENGINE_TLS')) }
  const { hostsAddress, gatewayHandover } = config
  if (hostsAddress) claimed.hostsAddress = await freeAddress(hostsAddress, 'BERTH_HOSTS_ADDRESS')
  if (gatewayHandover) claimed.gatewayHandover = await freeAddress(gatewayHandover, 'BERTH_GATEWAY_HANDOVER')
  // The default of BERTH_PUBLIC_URL is the address of the API, whose port is known only now.
  const isDefault = config.publicUrl === httpUrl(config.apiAddress)
  return isDefault ? { ...claimed, publicUrl: httpUrl(claimed.apiAddress) } : claimed
}

/** Returns the address with a real port; throws the sentence if Berth cannot listen on it. */
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
    return `${host}:${port} is taken by another program: stop it ("ss -ltnp" shows it), or set ${variable} to another address.`
  }
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `${host} is not an address of this machine: set ${variable} to one that is.`
  }
  return `${host}:${port} cannot be listened on (${String(code ?? cause)}): set ${variable} to another address.`
}
