// What the processes of one instance call in each other: the primary, which does everything, and the workers, which accept
// connections and serve the operations beside it, but leave writes and all other requests to it.
import type { Config } from '../config.ts'
import type { Timeouts } from '../http/app.ts'
import type { Snapshot } from '../http/metrics.ts'
import type { Lease } from '../http/rate-limit.ts'
import type { RemoteStore } from '../store/remote-writes.ts'

export interface WorkerStart {
  config: Config
  /** Where the primary takes requests that are not for an operation. */
  back: string
  timeouts: Timeouts | undefined
}

export type ForPrimary = {
  callStore: RemoteStore['call']
  createEach: RemoteStore['createEach']
  lease: Lease
}

export type ForWorker = {
  /** Resolves when the worker could serve; it accepts connections once it is sent the listening socket. */
  start(parts: WorkerStart): Promise<void>
  forgetKeys(): void
  flushUsage(): Promise<void>
  /** Undefined if nothing is measured. */
  snapshot(): Promise<Snapshot | undefined>
  drain(): void
  /** Resolves when requests are answered and counts are written; the process then ends. */
  stop(): Promise<void>
}
