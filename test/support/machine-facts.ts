// What there must be on a host for one machine, as the sentences of host-facts.ts.

import type { IsolationClass } from '../../src/engine/engine.ts'

export type ExpectedMachine = {
  id: string
  address: string | null
  group: number
  isolation: IsolationClass
  hasVolume: boolean
  /** The run that goes on. */
  run: { generation: number; frozen: boolean } | null
  /** The runtime's name of its first run, if that was made ahead. */
  madeAs?: string | undefined
}

export function machineFacts(machine: ExpectedMachine): string[] {
  const { id, address, group, isolation, hasVolume, run, madeAs } = machine
  const name = run?.generation === 1 && madeAs ? madeAs : `${id}-${run?.generation}`
  return [
    `a subvolume, disks/${id}`,
    `${id} has something in the pool`,
    ...(hasVolume ? [`a subvolume, volumes/${id}`, `${id} has something in the pool`] : []),
    `${id} has a record with ${address}${run ? `, in which run ${run.generation} goes on` : ''}`,
    `a member, ${address} ${group}`,
    `a peer, ${group} ${address}`,
    ...(run ? runFacts(name, isolation) : []),
    ...(run ? [`${address} is plugged in`, `${name} is behind ${address}`] : []),
    ...(run?.frozen ? [`${name} stands still`] : []),
  ]
}

/** What an instance has whatever machines it has. */
export function instanceFacts(dataDir: string): string[] {
  return [`a mount, ${dataDir}/pool`, `a loop device of ${dataDir}/pool.btrfs`]
}

/** Sentences that only one side tells: `-` is wanted and not there, `+` is there and not wanted. */
export function differencesOf(wanted: string[], found: string[]): string[] {
  return [
    ...without(wanted, found).map((fact) => `- ${fact}`),
    ...without(found, wanted).map((fact) => `+ ${fact}`),
  ]
}

function runFacts(run: string, isolation: IsolationClass): string[] {
  return [
    `${run} has a group`,
    `${run} has processes`,
    `${run} has a monitor`,
    `${run} has a directory`,
    `${run} is known to its runtime`,
    ...(isolation === 'gvisor' ? [`${run} has a sandbox`, `${run} has a gofer`] : []),
  ]
}

/** Those of one list that another lacks; one said twice is to be said twice there too. */
function without(list: string[], other: string[]): string[] {
  const left = [...other]
  return list.filter((fact) => {
    const index = left.indexOf(fact)
    if (index >= 0) left.splice(index, 1)
    return index < 0
  })
}
