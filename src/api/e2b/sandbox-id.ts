// A sandbox is a unit; its id is the unit's without the prefix, so that `<port>-<id>` fits a label of a host name.

export function sandboxIdOf(unitId: string): string {
  return unitId.slice('unit_'.length)
}

/** Null if no unit can have this id. */
export function unitIdOf(sandboxId: string): string | null {
  return /^[0-9a-f]{32}$/.test(sandboxId) ? `unit_${sandboxId}` : null
}
