// Wraps a store to measure the duration of each call.
import type { Store } from './store.ts'

type Observe = (method: string, seconds: number) => void

/** Every part of the store is measured, such as `pets`; its own methods, such as `ping`, are not. */
export function timedStore(store: Store, observe: Observe): Store {
  const parts = Object.entries(store).map(([name, part]: [string, unknown]) => [
    name,
    typeof part === 'object' && part !== null ? timed(part, name, observe) : part,
  ])
  return Object.fromEntries(parts) as Store
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
