// Goes once through the client as an installed package, on whatever runtime; the result is plain text, to compare.
import { Petstore, PetstoreError } from 'petstore-client'

/**
 * @param {{ apiKey: string, baseUrl: string, hangingUrl: string, redirectingUrl: string }} addresses
 * @returns {Promise<Record<string, string>>}
 */
export async function tour({ apiKey, baseUrl, hangingUrl, redirectingUrl }) {
  /** @type {string[]} */
  const notices = []
  const petstore = new Petstore({
    apiKey,
    baseUrl,
    maxRetries: 0,
    onDeprecation: ({ message }) => notices.push(message),
  })
  const lowest = await petstore.createPet({ name: 'Lowest', categoryId: -(2n ** 63n), status: 'sold' })
  const highest = await petstore.createPet({ name: 'Høchst 🐕', categoryId: 2n ** 63n - 1n, status: 'sold' })
  const { pets, nextCursor } = await petstore.listPets({ status: 'sold', limit: 1 })
  const names = []
  for await (const pet of petstore.listPets({ status: 'sold', limit: 1 })) names.push(pet.name)
  const same = await petstore.getPet(highest.id)
  const elsewhere = (/** @type {string} */ url) => new Petstore({ apiKey, baseUrl: url, maxRetries: 0 })

  // The lowest animals of earlier runtimes are there too.
  return {
    created: `${lowest.categoryId} ${highest.categoryId}`,
    listed: `${pets.length} ${pets[0]?.id === highest.id} ${nextCursor !== undefined}`,
    iterated: names.slice(0, 2).join(),
    got: `${same.name} ${same.categoryId}`,
    notices: notices.map((text) => text.replace(/:.*/, '')).join(),
    invalid: await failure(petstore.createPet({ name: '', categoryId: 1 })),
    unauthorized: await failure(new Petstore({ apiKey: 'mine', baseUrl }).createPet({ name: 'Rex', categoryId: 1 })),
    timeout: await failure(elsewhere(hangingUrl).createPet({ name: 'Rex', categoryId: 1 }, { timeout: 500 })),
    aborted: await failure(elsewhere(hangingUrl).getPet(1, { signal: AbortSignal.timeout(500) })),
    redirected: await failure(elsewhere(redirectingUrl).getPet(1)),
    unreachable: await failure(elsewhere('http://nowhere.invalid/v1').getPet(1)),
  }
}

/** @param {Promise<unknown>} call */
async function failure(call) {
  try {
    await call
    return 'no error'
  } catch (error) {
    const { name } = /** @type {Error} */ (error)
    return error instanceof PetstoreError ? `${name} ${error.code} ${Boolean(error.requestId)}` : name
  }
}
