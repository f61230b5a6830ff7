// Standard input: {policies: [{identity: {name: document}, resource: document | null,
//                              boundary: document | null}],
//                  rows: [{policies: index, principal, action, resource, account, context}]}.
// Standard output: one {result, sids, ignored, error} for each row, in order.
import { readFileSync } from 'node:fs'
import { runSimulation } from '@cloud-copilot/iam-simulate'

const { policies, rows } = JSON.parse(readFileSync(0, 'utf8'))

const named = (statements) => statements.map((found) => `${found.policyId ?? 'resource'}/${found.statement.sid()}`)

const DECIDING = { Allowed: 'allowStatements', ExplicitlyDenied: 'denyStatements' }

const sidsOf = (analysis) =>
  [analysis.identityAnalysis, analysis.resourceAnalysis].flatMap((part) => named(part?.[DECIDING[analysis.result]] ?? []))

const decide = async (row) => {
  const { identity, resource, boundary } = policies[row.policies]
  const found = await runSimulation(
    {
      request: {
        principal: row.principal,
        action: row.action,
        resource: { resource: row.resource, accountId: row.account },
        contextVariables: row.context,
      },
      identityPolicies: Object.entries(identity).map(([name, policy]) => ({ name, policy })),
      serviceControlPolicies: [],
      resourceControlPolicies: [],
      resourcePolicy: resource ?? undefined,
      permissionBoundaryPolicies: boundary ? [{ name: 'boundary', policy: boundary }] : undefined,
    },
    { simulationMode: 'Strict' },
  )
  if (found.resultType !== 'single') return { error: JSON.stringify(found.errors ?? found) }
  const { analysis, ignoredContextKeys } = found.result
  return { result: found.overallResult, sids: sidsOf(analysis), ignored: ignoredContextKeys ?? [] }
}

const decisions = []
for (const row of rows) decisions.push(await decide(row))
process.stdout.write(JSON.stringify(decisions))
