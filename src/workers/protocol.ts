// What the processes of one instance call in each other.
import type { Config } from '../config.ts'
import type { Timeouts } from '../http/app.ts'
import type { Snapshot } from '../http/metrics.ts'
import type { Shared, Told } from '../http/shared.ts'

export interface WorkerStart {
  config: Config
  timeouts: Timeouts | undefined
}

export type ForFirst = { [Name in keyof Shared]: NonNullable<Shared[Name]> } & {
  /** Sends the listening socket, which the worker accepts connections from as soon as it arrives. */
  sendSocket(): Promise<void>
  /** Ends the instance: the worker can't go on with its store. */
  fail(message: string): void
}

export type ForWorker = {
  /** Resolves when the worker accepts connections. */
  start(parts: WorkerStart): Promise<void>
  /** Shows that the event loop turns. */
  ping(): void
  tell(what: Told): Promise<void>
  /** Undefined if nothing is measured. */
  snapshot(): Promise<Snapshot | undefined>
  drain(): Promise<void>
  /** Resolves when requests are answered, counts are written and the store is closed; the process then ends. */
  stop(): Promise<void>
}
