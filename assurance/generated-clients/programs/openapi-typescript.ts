// Calls every operation with the types of openapi-typescript. Compiled strictly, then run; prints what it got.
import createClient from 'openapi-fetch'
import type { components, paths } from './generated/petstore.js'

const client = createClient<paths>({ baseUrl: process.env['BASE']!, headers: { Authorization: `Bearer ${process.env['KEY']}` } })

// An animal without a status is valid, and a new error code must not break a program.
const rex: components['schemas']['NewPet'] = { name: 'Rex', categoryId: 3 }
const created = await client.POST('/pets', { body: rex, params: { header: { 'Idempotency-Key': 'generated-1' } } })
const listed = await client.GET('/pets', { params: { query: { limit: 1, status: 'available' } } })
const got = await client.GET('/pets/{petId}', { params: { path: { petId: created.data!.id } } })
const refused = await client.GET('/pets', { params: { query: { limit: 0 } } })
const code: string | undefined = refused.error?.code

console.log(JSON.stringify({ created: created.data, listed: listed.data, got: got.data, code, status: refused.response.status }))
