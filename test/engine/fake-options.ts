// How the engine in memory takes the contract, alone and behind the socket.

import type { ContractOptions } from './contract.ts'

const notReal = 'the engine in memory has no'

export const fakeOptions: ContractOptions = {
  isolation: 'runc',
  image: 'berth.local/debian:12',
  imageEnv: { name: 'PATH', value: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  small: true,
  without: {
    processes: `${notReal} processes`,
    hostileFiles: `${notReal} links, devices or FIFOs`,
    limits: `${notReal} limits`,
    network: `${notReal} network`,
    restart: `${notReal} state outside of its process`,
  },
}
