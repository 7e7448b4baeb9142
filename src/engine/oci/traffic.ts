// Which machines have received packets from others. A machine that sleeps or is being stopped must not wake others,
// although its kernel answers, retransmits and closes connections: what such a machine sends is left out here,
// because only the engine knows the state of its machines.

import type { EngineContext } from './machine/context.ts'

export async function watchTraffic(
  { machines, network }: EngineContext,
  onTraffic: (ids: string[]) => void,
  signal: AbortSignal,
): Promise<void> {
  await network.watchTraffic((pairs) => {
    const owners = new Map([...machines.values()].map((machine) => [machine.record.address, machine]))
    const told = new Set<string>()
    for (const { from, to } of pairs) {
      const [sender, receiver] = [owners.get(from), owners.get(to)]
      if (!sender || !receiver || sender === receiver || sender.frozen || sender.ending) continue
      told.add(receiver.record.spec.id)
    }
    if (told.size > 0) onTraffic([...told])
  }, signal)
}
