// Checks through the API, page by page, that every acknowledged animal is stored once, under the id of its answer.
import type { Acknowledged, Clients } from './clients.ts'

export interface Verdict {
  stored: number
  lost: string[]
  doubled: string[]
}

export async function compare(url: string, key: string, acknowledged: readonly Acknowledged[]): Promise<Verdict> {
  const stored = await readAll(url, key)
  const idsByName = Map.groupBy(stored, ({ name }) => name)
  return {
    stored: stored.length,
    lost: acknowledged
      .filter(({ name, id }) => !idsByName.get(name)?.some((pet) => String(pet.id) === id))
      .map(({ name }) => name),
    doubled: [...idsByName].filter(([, pets]) => pets.length > 1).map(([name]) => name),
  }
}

/** The answers that the clients got, and their comparison with what is stored. */
export interface Audit {
  clients: Clients
  verdict: Verdict
}

/** Stops the clients, and compares their answers with what is stored. */
export async function stopAndAudit(url: string, key: string, clients: Clients): Promise<Audit> {
  await clients.stop()
  return { clients, verdict: await compare(url, key, clients.acknowledged) }
}

/** Returns whether creates were acknowledged, nothing was lost or doubled, and no create failed despite retries. */
export function isWhole({ clients: { acknowledged, failed }, verdict: { lost, doubled } }: Audit): boolean {
  return acknowledged.length > 0 && failed.length === 0 && lost.length === 0 && doubled.length === 0
}

export interface Listed {
  id: number
  name: string
}

/** Reads all animals, or those of this status, page by page. */
export async function readAll(url: string, key: string, status?: string): Promise<Listed[]> {
  const pets: Listed[] = []
  let next: string | undefined = `/v1/pets?limit=100${status === undefined ? '' : `&status=${status}`}`
  while (next !== undefined) {
    const response: Response = await fetch(new URL(next, url), { headers: { Authorization: `Bearer ${key}` } })
    if (!response.ok) throw new Error(`GET ${next} was answered ${response.status}`)
    pets.push(...((await response.json()) as Listed[]))
    next = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  }
  return pets
}
