// Wraps a store to measure the duration of each call.
import type { Store } from './store.ts'

type Observe = (method: string, seconds: number) => void

export function timedStore(store: Store, observe: Observe): Store {
  return { ...store, pets: timed(store.pets, 'pets', observe), accounts: timed(store.accounts, 'accounts', observe) }
}

function timed<T extends object>(target: T, name: string, observe: Observe): T {
  return new Proxy(target, {
    get(object, property) {
      const method: unknown = Reflect.get(object, property)
      if (typeof method !== 'function') return method
      return (...parameters: unknown[]): unknown => {
        const started = performance.now()
        const result: unknown = method.apply(object, parameters)
        if (!(result instanceof Promise)) return result
        return result.finally(() => observe(`${name}.${String(property)}`, (performance.now() - started) / 1000))
      }
    },
  })
}
