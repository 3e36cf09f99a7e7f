// Calls every operation with the client that hey-api generates, at the address that the served document lists. Prints what it got.
import { client } from './generated/client.gen.js'
import { createPet, getPet, listPets } from './generated/sdk.gen.js'
import type { NewPet } from './generated/types.gen.js'

client.setConfig({ auth: process.env['KEY']! })

const rex: NewPet = { name: 'Rex', categoryId: 3 }
const created = await createPet({ body: rex, headers: { 'Idempotency-Key': 'generated-2' } })
const listed = await listPets({ query: { limit: 1, status: 'available' } })
const got = await getPet({ path: { petId: created.data!.id } })
const refused = await listPets({ query: { limit: 0 } })
const code: string | undefined = refused.error?.code

console.log(JSON.stringify({ created: created.data, listed: listed.data, got: got.data, code, status: refused.response?.status }))
