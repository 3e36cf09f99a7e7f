// The methods that workers call in the first process of their instance, and those that it calls in them (channel.ts).
import type { Config } from '../config.ts'
import type { Timeouts } from '../http/app.ts'
import type { Snapshot } from '../http/metrics.ts'
import type { Broadcast, Shared } from '../http/shared.ts'

export interface WorkerStart {
  config: Config
  timeouts: Timeouts | undefined
}

export type FirstProcessMethods = { [Name in keyof Shared]: NonNullable<Shared[Name]> } & {
  /** Sends the listening socket to the worker, which accepts connections from it as soon as it arrives. */
  sendSocket(): Promise<void>
  /** Ends the instance, because the worker cannot continue with its store. */
  fail(message: string): void
}

export type WorkerMethods = {
  /** Resolves when the worker accepts connections. */
  start(parts: WorkerStart): Promise<void>
  /** Returns if the worker's event loop is not blocked. */
  ping(): void
  onBroadcast(event: Broadcast): Promise<void>
  /** Resolves with undefined if metrics are off. */
  snapshot(): Promise<Snapshot | undefined>
  drain(): Promise<void>
  /** Resolves when requests are answered, usage counts are written and the store is closed; the process then ends. */
  stop(): Promise<void>
}
