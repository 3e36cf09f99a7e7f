// An error on its way to another process, where it loses its class; callers tell some classes apart.
import { CannotOpenStore, StoreBusy, StoreUnavailable } from '../store/store.ts'

export interface CarriedError {
  name: string
  message: string
  code: unknown
  cause: CarriedError | undefined
}

const KINDS: Partial<Record<string, new (message: string) => Error>> = { StoreUnavailable, StoreBusy, CannotOpenStore }

export function carry(error: Error & { code?: unknown }): CarriedError {
  const { name, message, code, cause } = error
  return { name, message, code, cause: cause instanceof Error ? carry(cause) : undefined }
}

export function restore({ name, message, code, cause }: CarriedError): Error {
  const Kind = KINDS[name] ?? Error
  return Object.assign(new Kind(message), { name, ...(code !== undefined && { code }), ...(cause !== undefined && { cause: restore(cause) }) })
}
