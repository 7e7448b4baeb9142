// Numbers of bytes as people read them, in the dashboard and the CLI.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** `512 MiB`: in steps of 1024, as memory, disks and every limit of the service are. */
export function byteSize(count: number): string {
  let value = count
  let step = 0
  // What would be rounded to 1024 is one of the next unit.
  while (Math.round(value) >= 1024 && step < UNITS.length - 1) {
    value /= 1024
    step += 1
  }
  return `${value.toFixed(step > 0 && value < 9.95 ? 1 : 0)} ${UNITS[step]}`
}
