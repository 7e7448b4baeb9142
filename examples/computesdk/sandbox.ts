// A command in a sandbox of ComputeSDK, which is a unit.

import { berth } from '@berth/sdk/computesdk'
import { compute } from 'computesdk'

export async function runOnce(command: string): Promise<string> {
  compute.setConfig({ provider: berth({ image: 'berth.local/python:3.11' }) })
  const sandbox = await compute.sandbox.create()
  try {
    return (await sandbox.runCommand(command)).stdout
  } finally {
    await sandbox.destroy()
  }
}
