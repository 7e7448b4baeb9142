// How much processor time this thread has used: what an algorithm costs, however busy the machine is with
// other things. For claims about growth (no pattern may explode), never for benchmarks.

/** Milliseconds of processor time since the function was made. */
export function cpuStopwatch(): () => number {
  const began = process.threadCpuUsage()
  return () => {
    const { user, system } = process.threadCpuUsage(began)
    return (user + system) / 1000
  }
}
