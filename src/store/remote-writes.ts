// A store that reads here and writes elsewhere, in the primary (workers/): all share
// one writer, and so its commits.
import type { NewPet } from '../contract/pets.ts'
import { fromTexts, type PetTexts, toTexts } from './pet-columns.ts'
import type { Created, Store } from './store.ts'
import { gatherWhileGrowing } from '../turns.ts'
import { carry, type CarriedError, restore } from './carried-error.ts'

type Part = 'pets' | 'accounts'
type Method = (...parameters: unknown[]) => unknown

/** The store that writes, as it is reached from elsewhere. */
export interface RemoteStore {
  call(part: Part, method: string, parameters: unknown[]): Promise<unknown>
  /** Adds animals whose creates came in one turn. Takes and gives JSON, which travels faster than what it stands for. */
  createEach(newPets: string): Promise<string>
}

/** What is read here: every request does it. All else, and so every write, goes there. */
const READ_HERE: Record<Part, ReadonlySet<string>> = {
  pets: new Set(['get', 'list']),
  accounts: new Set(['keyByHash']),
}

export function withRemoteWrites(local: Store, remote: RemoteStore): Store {
  const create = gatherCreates(remote)
  const createOne: Store['pets']['create'] = (newPet, idempotency) =>
    idempotency === undefined
      ? create(newPet)
      : (remote.call('pets', 'create', [newPet, idempotency]) as Promise<Created>)
  return {
    ...local,
    pets: partOf('pets', local.pets, remote, { create: createOne }),
    accounts: partOf('accounts', local.accounts, remote),
  }
}

function partOf<T extends object>(part: Part, local: T, remote: RemoteStore, own: Partial<T> = {}): T {
  const methods = new Map<PropertyKey, unknown>(Object.entries(own))
  return new Proxy(local, {
    get(target, name) {
      const known = methods.get(name)
      if (known !== undefined) return known
      const method = READ_HERE[part].has(String(name))
        ? (Reflect.get(target, name) as Method).bind(target)
        : (...parameters: unknown[]) => remote.call(part, String(name), parameters)
      methods.set(name, method)
      return method
    },
  })
}

interface Waiting {
  newPet: NewPet
  resolve: (created: Created) => void
  reject: (error: unknown) => void
}

/** The id of the animal, or why there is none. */
type Outcome = string | CarriedError

function gatherCreates(remote: RemoteStore): (newPet: NewPet) => Promise<Created> {
  async function createAll(waiting: readonly Waiting[]): Promise<void> {
    const texts = waiting.map(({ newPet }) => toTexts(newPet))
    try {
      const outcomes = JSON.parse(await remote.createEach(JSON.stringify(texts))) as Outcome[]
      for (const [index, { newPet, resolve, reject }] of waiting.entries()) {
        const outcome = outcomes[index]!
        if (typeof outcome === 'string') resolve({ outcome: 'created', pet: { id: BigInt(outcome), ...newPet } })
        else reject(restore(outcome))
      }
    } catch (error) {
      for (const { reject } of waiting) reject(error)
    }
  }

  const gather = gatherWhileGrowing((waiting: readonly Waiting[]) => void createAll(waiting))
  return (newPet) => new Promise((resolve, reject) => gather({ newPet, resolve, reject }))
}

/** What `call` does where the store writes. */
export async function callRemote(store: Store, part: Part, method: string, parameters: unknown[]): Promise<unknown> {
  return (store[part] as unknown as Record<string, Method>)[method]!(...parameters)
}

/** What `createEach` does where the store writes: each create succeeds or fails for itself. */
export async function createEach({ pets }: Store, newPets: string): Promise<string> {
  const outcomes = (JSON.parse(newPets) as PetTexts[]).map(async (texts): Promise<Outcome> => {
    try {
      const created = await pets.create(fromTexts(texts))
      if (created.outcome !== 'created') throw new Error(`a create without idempotency key was ${created.outcome}`)
      return String(created.pet.id)
    } catch (error) {
      return carry(error as Error)
    }
  })
  return JSON.stringify(await Promise.all(outcomes))
}
