// Whether a restored store is the one that was backed up, and works.
import { randomUUID } from 'node:crypto'
import { makeKey, petstore } from '../../test/harness/programs/instance.ts'
import type { Acknowledged } from '../../test/harness/failures/clients.ts'
import { compare, type Listed, readAll } from '../../test/harness/failures/verdict.ts'

/** What was seen of a store before it is restored. */
export interface Witness {
  key: string
  revoked: string
  /** The answer to a create with an Idempotency-Key, before the backup. */
  answer: string
  /** What the clients added before the backup began. */
  acknowledged: readonly Acknowledged[]
  /** All animals, as they were listed after the backup. */
  listed: readonly Listed[]
}

/** An animal that a careless copy would change. */
const EXACT = '{"name":"  Zoë 🐇","categoryId":9223372036854775807,"status":"sold"}'

function create(url: string, key: string, idempotencyKey: string): Promise<Response> {
  const headers = {
    Authorization: `Bearer ${key}`,
    'Content-Type': 'application/json',
    'Idempotency-Key': idempotencyKey,
  }
  return fetch(`${url}/v1/pets`, { method: 'POST', headers, body: EXACT })
}

const BEFORE = 'before the backup'

export async function witnessOf(database: string, url: string): Promise<Pick<Witness, 'key' | 'revoked' | 'answer'>> {
  const command = (words: readonly string[], input?: string) => petstore(database, words, input)
  const [{ key }, { id, key: revoked }] = [await makeKey(command), await makeKey(command)]
  petstore(database, ['key', 'revoke', id])
  return { key, revoked, answer: await (await create(url, key, BEFORE)).text() }
}

/** Resolves with what is wrong with a restored store that these instances serve. */
export async function findFaults(database: string, urls: readonly string[], witness: Witness): Promise<string[]> {
  const { key, revoked, answer, acknowledged, listed } = witness
  const faults: string[] = []
  const expect = (holds: boolean, fault: string) => holds || faults.push(fault)
  const names = new Set(acknowledged.map(({ name }) => name))
  const seen = new Map(listed.map((pet) => [pet.id, JSON.stringify(pet)]))
  for (const url of urls) {
    const { lost, doubled } = await compare(url, key, acknowledged)
    expect(lost.length === 0, `${lost.length} acknowledged animals are missing`)
    const twice = doubled.filter((name) => names.has(name))
    expect(twice.length === 0, `${twice.length} acknowledged animals are there twice`)
    const pets = await readAll(url, key)
    const changed = pets.filter((pet) => seen.get(pet.id) !== JSON.stringify(pet))
    expect(changed.length === 0, `${changed.length} animals differ from those that were backed up`)
    const byStatus = await Promise.all(['available', 'pending', 'sold'].map((status) => readAll(url, key, status)))
    expect(byStatus.flat().length === pets.length, 'the lists by status have other animals than the list of all')
  }
  for (const url of urls) {
    const [newest] = await readAll(url, key)
    const replay = await create(url, key, BEFORE)
    expect(replay.headers.has('idempotent-replayed') && (await replay.text()) === answer, 'a retry adds another animal')
    expect((await create(url, revoked, randomUUID())).status === 401, 'a revoked key works')
    const made = await create(url, key, randomUUID())
    const { id = 0 } = made.status === 201 ? ((await made.json()) as Listed) : {}
    expect(id > (newest?.id ?? 0), `a create gets ${made.status} with id ${id}`)
  }
  const { checks } = JSON.parse(petstore(database, ['doctor', '--json'])) as {
    checks: { state: string; found: string }[]
  }
  faults.push(...checks.filter(({ state }) => state !== 'ok').map(({ found }) => `doctor: ${found}`))
  return faults
}
