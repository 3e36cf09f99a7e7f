// Answers as bytes: serialisers made from the schemas; they print a bigint digit for digit.
import fastJson from 'fast-json-stringify'
import { type ErrorBody, ErrorSchema } from './errors.ts'
import { toJsonSchema } from './json-schema.ts'
import { type Pet, PetSchema } from './pets.ts'

const compile = fastJson as (schema: object) => (value: unknown) => string
const pet = toJsonSchema(PetSchema)

export const renderPet: (pet: Pet) => string = compile(pet)
export const renderPets: (pets: readonly Pet[]) => string = compile({ type: 'array', items: pet })
export const renderError: (error: ErrorBody) => string = compile(toJsonSchema(ErrorSchema))
