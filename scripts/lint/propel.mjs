// Rules of this repository's own for oxlint.

const MESSAGE =
  'a list as arguments: the stack bounds how many there can be; pass the list, or take largest, smallest, reduce or a loop';

/** Refuses `f(...list)`. A constant in capitals is written out in the source, and so is as long as it looks. */
const noSpreadArguments = {
  create(context) {
    const check = (node) => {
      for (const argument of node.arguments) {
        if (argument.type !== 'SpreadElement') continue;
        const { argument: list } = argument;
        const isWrittenOut = list.type === 'Identifier' && /^[A-Z][A-Z0-9_]*$/.test(list.name);
        if (!isWrittenOut) context.report({ node: argument, message: MESSAGE });
      }
    };
    return { CallExpression: check, NewExpression: check };
  },
};

// oxlint takes a plugin from the default export.
// oxlint-disable-next-line import/no-default-export
export default { meta: { name: 'propel' }, rules: { 'no-spread-arguments': noSpreadArguments } };
