// An error on its way to another process or thread, where it loses its class; callers tell some classes apart.
import { StoreBusy, StoreUnavailable } from './store.ts'

export interface CarriedError {
  name: string
  message: string
}

const KINDS: Partial<Record<string, new (message: string) => Error>> = { StoreUnavailable, StoreBusy }

export function carry({ name, message }: Error): CarriedError {
  return { name, message }
}

export function restore({ name, message }: CarriedError): Error {
  const Kind = KINDS[name] ?? Error
  return Object.assign(new Kind(message), { name })
}
