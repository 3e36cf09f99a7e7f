// What the handler of an operation is, and what it works with.
import type { Refusal } from '../contract/errors.ts'
import type { Store } from '../store/store.ts'
import type { Answer, OperationCall } from './call.ts'

export type Handler = (call: OperationCall) => Promise<Answer | Refusal>

export interface HandlerParts {
  store: Store
  clock: () => number
  /** The deployment's public base address if it is configured, else the base path: links are then relative. */
  base: string
}
