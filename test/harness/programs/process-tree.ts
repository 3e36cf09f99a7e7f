// Process trees on Linux: signals to a process and its descendants, their CPU time and memory, read from /proc.
import { readdirSync, readFileSync } from 'node:fs'

/** Returns the child processes. Linux lists them for each thread separately. */
export function childrenOf(pid: number): number[] {
  const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`)) ?? []
  const lists = threads.map(
    (thread) => unlessGone(() => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')) ?? '',
  )
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number))
}

/** Returns whether a process runs. A zombie does not: in many containers, the first process never waits for the orphans that it adopts. */
export function isRunning(pid: number): boolean {
  const state = unlessGone(() => fieldsOf(pid)[0])
  return state !== undefined && state !== 'Z'
}

/** Returns a process and its descendants, itself first. */
export function processTree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)]
}

/** Sends a signal to a process and its descendants. Stops each with SIGSTOP first, so that it starts no further children. */
export function signalTree(pid: number, signal: NodeJS.Signals): void {
  unlessGone(() => process.kill(pid, 'SIGSTOP'))
  for (const child of childrenOf(pid)) signalTree(child, signal)
  unlessGone(() => process.kill(pid, signal))
}

/** Returns undefined if the process, or the thread, has ended. */
function unlessGone<T>(ask: () => T): T | undefined {
  try {
    return ask()
  } catch {
    return undefined
  }
}

/**
 * Returns the CPU time so far of a process and its descendants, in user mode and in the kernel, with that of descendants which have
 * ended. Linux counts hundredths of a second.
 */
export function cpuSeconds(pid: number): number {
  return processTree(pid).reduce((sum, each) => {
    const times = unlessGone(() => fieldsOf(each).slice(11, 15)) ?? []
    return sum + times.reduce((ticks, time) => ticks + Number(time), 0) / 100
  }, 0)
}

/** Returns the fields of /proc/PID/stat from the state on, which follow the name of the program. */
function fieldsOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ')
}

export function residentMegabytes(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024
}
