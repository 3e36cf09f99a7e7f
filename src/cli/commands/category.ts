// petstore category …: gives names to the numbers that animals have as their category.
import { FieldProblem } from '../../contract/errors.ts'
import { addCategory } from '../../store/category-store.ts'
import { askToCreate, type Command, CommandFailed, conclude, STORE_OPTIONS, withStore } from '../command.ts'

export const createCategory: Command = {
  name: 'category create',
  summary: 'Give a category of animals a name',
  takes: ['NAME'],
  options: {
    number: { value: 'NUMBER', meaning: 'The number that its animals have; unset: a free one' },
    ...STORE_OPTIONS,
  },
  examples: ['petstore category create Cats', 'petstore category create Dogs --number 3'],
  async run(input) {
    const { terminal, positionals, flags } = input
    const [name, digits] = [positionals[0]!.trim(), flags['number'] ?? '']
    const by = { at: terminal.clock(), accountId: '', via: 'command line' } as const
    await askToCreate(input)
    const added = await withStore(input, (store) => addCategory(store, name, digits, by), { create: true })
    if (added instanceof FieldProblem) throw new CommandFailed(`${added.message}.`)
    conclude(input, { name, number: String(added.number) }, `The category ${added.number} is named ${name}.`)
  },
}
