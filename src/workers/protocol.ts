// What the processes of one instance call in each other: the primary, which writes and does everything that is not an
// operation, and the workers, which accept connections and serve the operations.
import type { AddressInfo } from 'node:net'
import type { Config } from '../config.ts'
import type { Timeouts } from '../http/app.ts'
import type { Snapshot } from '../http/metrics.ts'
import type { Grant } from '../http/rate-limit.ts'
import type { InheritedSocket } from '../listening.ts'
import type { RemoteStore } from './remote-writes.ts'

export interface WorkerStart {
  config: Config
  /** Where the primary takes requests that are not for an operation. */
  back: string
  socket: InheritedSocket | undefined
  timeouts: Timeouts | undefined
}

export type ForPrimary = {
  callStore: RemoteStore['call']
  createEach: RemoteStore['createEach']
  lease(account: string, wanted: number): Grant
}

export type ForWorker = {
  /** Resolves when the worker listens, with its address. */
  start(parts: WorkerStart): Promise<AddressInfo>
  forgetKeys(): Promise<void>
  flushUsage(): Promise<void>
  /** Undefined if nothing is measured. */
  snapshot(): Promise<Snapshot | undefined>
  drain(): void
  /** Resolves when requests are answered and counts are written; the process then ends. */
  stop(): Promise<void>
}
