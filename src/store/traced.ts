// What the store knows of traces: engines record the steps of a call for the current request. http/tracer.ts makes spans of them.
import { AsyncLocalStorage } from 'node:async_hooks'

export interface Traced {
  /** Records a step, such as the wait for a connection, with its times (performance.now()) and how many calls have shared it. */
  step: (name: string, from: number, to: number, sharedBy?: number) => void
}

/** The current request; empty unless it is traced. */
export const traced = new AsyncLocalStorage<Traced | undefined>()

/** Records a step that lasts until the promise is settled. Returns the promise, or the value that nothing had to wait for. */
export function recorded<T>(name: string, step: T): T {
  const request = traced.getStore()
  if (request === undefined || !(step instanceof Promise)) return step
  const from = performance.now()
  const ended = () => request.step(name, from, performance.now())
  step.then(ended, ended)
  return step
}
