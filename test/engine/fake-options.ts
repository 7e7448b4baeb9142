// Contract options of the fake engine, alone and behind its socket.

import type { FakeEngine } from '../support/fake-engine/fake-engine.ts'
import type { ContractOptions } from './contract.ts'
import { configuredImage } from './suite.ts'

const notReal = 'the engine in memory has no'

export const fakeOptions: ContractOptions = {
  isolation: 'runc',
  image: 'berth.local/debian:12',
  imageEnv: { name: 'PATH', value: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  small: true,
  without: {
    processes: `${notReal} processes`,
    backgroundOnHost: `${notReal} processes`,
    output: `${notReal} processes`,
    hostileFiles: `${notReal} links, devices or FIFOs`,
    hostileDirectories: `${notReal} links, devices or FIFOs`,
    hostilePlaces: `${notReal} links, devices or accounts`,
    realUsers: `${notReal} processes or accounts`,
    watching: `${notReal} kernel that tells of changes`,
    storage: `${notReal} disk`,
    diskForks: `${notReal} disk`,
    limits: `${notReal} limits`,
    counted: `${notReal} processes`,
    bombs: `${notReal} limits`,
    posture: `${notReal} kernel`,
    network: `${notReal} network`,
    traffic: `${notReal} packets but those a test says were sent`,
    restart: `${notReal} state outside of its process`,
  },
}

export async function pullConfigured(fake: FakeEngine): Promise<string> {
  const reference = 'docker.io/library/configured:1'
  fake.setImage(reference, configuredImage)
  return (await fake.pull(reference)).digest
}
