// What a server takes of the machine, as Linux tells: CPU time of all its processes, and memory.
import { readFileSync } from 'node:fs'
import { childrenOf } from '../drills/processes.ts'

/** A process and all it started, itself first. */
export function processTree(pid: number): number[] {
  return [pid, ...childrenOf(pid).flatMap(processTree)]
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

/** Megabytes: proportional set size (what is shared counts in parts), and of that what the process shares with none. */
export function memoryOf(pid: number): { pss: number; private: number } {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8')
  const megabytes = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)![1]) / 1024
  return { pss: megabytes('Pss'), private: megabytes('Private_Clean') + megabytes('Private_Dirty') }
}
