// The kernel's grace periods (decisions/creates.md): a call that replaces what other processors may be reading waits until
// none does. By default the kernel waits for what they do anyway, 10 ms or more; asked to hurry, it interrupts them, and is
// done in less than one. Starts of sandboxes, and changes of control groups and of network namespaces, wait so many times.
//
// The setting is the whole host's, so it is set back when the engine ends, and set again at creates. A host that wants none of that
// (`rcupdate.rcu_normal=1`) has the last word: its kernel then ignores the setting.

import { readFileSync, rmSync, writeFileSync } from 'node:fs'

const SETTING = '/sys/kernel/rcu_expedited'

/**
 * `note`: a file that is lost with the power, as the setting is; it says for the next engine that the setting is ours. Returns
 * false if the kernel cannot be asked.
 */
export function hastenGracePeriods(note: string, setting = SETTING): boolean {
  try {
    if (isHastened(setting)) return true
    writeFileSync(note, '')
    writeFileSync(setting, '1')
    return true
  } catch {
    // An older kernel, or a host whose settings are read-only.
    return false
  }
}

/** Leaves it as it is if another program had asked for it. */
export function leaveGracePeriods(note: string, setting = SETTING): void {
  try {
    readFileSync(note)
    writeFileSync(setting, '0')
    rmSync(note)
  } catch {
    // It is not ours.
  }
}

function isHastened(setting: string): boolean {
  return readFileSync(setting, 'utf8').trim() !== '0'
}
