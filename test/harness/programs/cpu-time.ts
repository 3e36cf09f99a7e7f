// Processor time, which other work on the machine hardly changes.

/** Returns the milliseconds that all threads of this process compute while the work runs. */
export async function cpuTime(work: () => unknown): Promise<number> {
  const started = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(started)
  return (user + system) / 1000
}
