// Processes and all they started, as Linux tells: signals to them, their CPU time and memory.
import { readdirSync, readFileSync } from 'node:fs'

/** Each thread has its own list. */
export function childrenOf(pid: number): number[] {
  const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`)) ?? []
  const lists = threads.map(
    (thread) => unlessGone(() => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8')) ?? '',
  )
  return lists.flatMap((list) => list.split(' ').filter(Boolean).map(Number))
}

/** A process and all it started, itself first. */
export function processTree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)]
}

/** Sends a signal to a process and to all it started. Each is stopped first, so that it starts no more meanwhile. */
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

/** CPU time of a process and of all it started, so far. Linux counts hundredths of a second, in user mode and in the kernel. */
export function cpuSeconds(pid: number): number {
  return processTree(pid).reduce((sum, each) => {
    const [user, kernel] = readFileSync(`/proc/${each}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
      .slice(11, 13)
    return sum + (Number(user) + Number(kernel)) / 100
  }, 0)
}

export function residentMegabytes(pid: number): number {
  return megabytes(`/proc/${pid}/status`, 'VmRSS')
}

/** Megabytes: proportional set size (what is shared counts in parts), and of that what the process shares with none. */
export function memoryOf(pid: number): { pss: number; private: number } {
  const file = `/proc/${pid}/smaps_rollup`
  return { pss: megabytes(file, 'Pss'), private: megabytes(file, 'Private_Clean') + megabytes(file, 'Private_Dirty') }
}

function megabytes(file: string, name: string): number {
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(readFileSync(file, 'utf8'))![1]) / 1024
}
