import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { loadConfig } from '../config.ts'
import { claimPorts } from './ports.ts'

const anyPort = {
  BERTH_API_ADDRESS: '127.0.0.1:0',
  BERTH_GATEWAY_HTTP: '127.0.0.1:0',
  BERTH_GATEWAY_TLS: '127.0.0.1:0',
  BERTH_GATEWAY_MYSQL: '127.0.0.1:0',
  BERTH_METRICS: '127.0.0.1:0',
  BERTH_GATEWAY_METRICS: '127.0.0.1:0',
}

describe('claimPorts', () => {
  it('replaces port 0 by a free port, also in the public URL', async () => {
    const config = await claimPorts(loadConfig(anyPort))
    expect(config.apiAddress.port).toBeGreaterThan(0)
    expect(config.publicUrl).toBe(`http://127.0.0.1:${config.apiAddress.port}`)
  })

  it('gives a free port to the address for other hosts only if there is one', async () => {
    expect((await claimPorts(loadConfig(anyPort))).hostsAddress).toBe(null)
    const config = await claimPorts(loadConfig({ ...anyPort, BERTH_HOSTS_ADDRESS: '127.0.0.1:0' }))
    expect(config.hostsAddress?.port).toBeGreaterThan(0)
  })

  it('keeps a public URL that the operator has set', async () => {
    const config = await claimPorts(loadConfig({ ...anyPort, BERTH_PUBLIC_URL: 'https://berth.example' }))
    expect(config.publicUrl).toBe('https://berth.example')
  })

  it('names the setting of a port that is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1')
    await once(other, 'listening')
    const { port } = other.address() as AddressInfo
    const config = loadConfig({ ...anyPort, BERTH_GATEWAY_HTTP: `127.0.0.1:${port}` })
    await expect(claimPorts(config)).rejects.toThrow(/is taken.*BERTH_GATEWAY_HTTP/)
    other.close()
  })

  it('names the setting of an address that this machine does not have', async () => {
    const config = loadConfig({ ...anyPort, BERTH_API_ADDRESS: '203.0.113.9:7070' })
    await expect(claimPorts(config)).rejects.toThrow(/not an address of this machine.*BERTH_API_ADDRESS/)
  })
})
