"""PyTorch programs: a function traced once into a list of PyTorch's operations, without Keras.

Called through Keras, each small operation costs several times what PyTorch takes for it: a token of
a model of 6 layers comes four times slower. `torch.compile` would go further, but needs a C++
compiler and minutes; a trace takes about a second.
"""

import torch
from keras import StatelessScope, ops, tree
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten

#: Operations that return their first argument where they change neither its shape, type nor order.
_KEEP = {
    aten._to_copy.default,
    aten._unsafe_view.default,
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten.expand.default,
    aten.lift_fresh_copy.default,
    aten.view.default,
}
#: The same operations by PyTorch's usual names, which cost half the time to call.
_USUAL = {
    aten._unsafe_view.default: torch.reshape,
    aten.add.Tensor: torch.add,
    aten.addmm.default: torch.addmm,
    aten.bmm.default: torch.bmm,
    aten.embedding.default: torch.embedding,
    aten.eq.Tensor: torch.eq,
    aten.gt.Scalar: torch.gt,
    aten.logical_and.default: torch.logical_and,
    aten.mm.default: torch.mm,
    aten.mul.Tensor: torch.mul,
    aten.native_layer_norm.default: torch.native_layer_norm,
    aten.permute.default: torch.permute,
    aten.reshape.default: torch.reshape,
    aten.select.int: torch.select,
    aten.unsqueeze.default: torch.unsqueeze,
    # A view might refuse strides that differ from those of the trace.
    aten.view.default: torch.reshape,
    aten.where.self: torch.where,
}
#: Operations that make a tensor for someone to write into.
_ALLOCATE = {aten.empty.memory_format, aten.full.default, aten.zeros.default}


class TorchProgram:
    """A function of tensors, for the shapes of its first call; it follows variables' values.

    Args:
        function: Takes and returns nested tensors and None; without branches or loops that depend
            on their values.
        variables: The Keras variables that it reads.
        owns_arguments: Whether its arguments may be written into, as the state of a loop may.
    """

    def __init__(self, function, variables, owns_arguments=False):
        self.function = function
        self.variables = variables
        self.owns_arguments = owns_arguments
        self.program = None

    @torch.no_grad()
    def __call__(self, *arguments):
        arguments = tree.map_structure(ops.convert_to_tensor, arguments)
        values = self.values()
        if self.program is None:
            self.trace(values, arguments)
        return tree.pack_sequence_as(self.outputs, self.program(*values, *tree.flatten(arguments)))

    def values(self):
        """Returns the variables' values."""
        return [variable.value for variable in self.variables]

    def trace(self, values, arguments):
        """Makes `program`, from values and flat arguments to flat outputs."""

        def run(*flat):
            scope = StatelessScope(zip(self.variables, flat[: len(values)], strict=True))
            with scope:
                outputs = self.function(*tree.pack_sequence_as(arguments, flat[len(values) :]))
            self.outputs = outputs
            return tree.flatten(outputs)

        # Fake tensors have no values, so that none can be baked into the program unseen.
        graph_module = make_fx(run, tracing_mode="fake")(*values, *tree.flatten(arguments))
        self.outputs = tree.map_structure(lambda _: 0, self.outputs)
        _simplify(graph_module)
        if self.owns_arguments:
            _write_in_place(graph_module.graph, skip=len(values))
        for node in graph_module.graph.nodes:
            node.target = _USUAL.get(node.target, node.target)
        graph_module.recompile()
        self.program = graph_module.forward


class TorchLoop:
    """A loop of `backend.compile_loop`, for the shapes of its first call.

    Args:
        loop: As `compile_loop` takes it; so are `variables`.
    """

    def __init__(self, loop, variables):
        def begin(*arguments):
            state = loop.begin(*arguments)
            return loop.running(*state), state

        def body(*state):
            # The new state in the order of the old one: Keras sorts only the outermost of nested
            # dicts on PyTorch (Keras 3.15).
            state = tree.map_structure(lambda _, new: new, state, loop.body(*state))
            return loop.running(*state), state

        self.begin = TorchProgram(begin, variables)
        self.body = TorchProgram(body, variables, owns_arguments=True)
        self.finish = TorchProgram(loop.finish, variables)

    @torch.no_grad()
    def __call__(self, *arguments):
        running, state = self.begin(*arguments)
        # Two tensors of the state may be one, which the body would write into.
        state = tree.map_structure(torch.clone, state)
        values = self.body.values()
        if self.body.program is None:
            self.body.trace(values, state)
        flat = tree.flatten(state)
        while running:
            running, *flat = self.body.program(*values, *flat)
        return self.finish(*tree.pack_sequence_as(state, flat))


def _simplify(program):
    """Takes out what changes nothing, what was computed before, and what nobody reads."""
    seen = {}
    for node in list(program.graph.nodes):
        if node.op == "get_attr":
            key = id(getattr(program, node.target))
        elif node.op == "call_function" and node.target not in _ALLOCATE:
            key = str((node.target, node.args, node.kwargs))
        else:
            continue
        same = node.args[0] if _returns_its_argument(node) else seen.setdefault(key, node)
        if same is not node:
            node.replace_all_uses_with(same)
            program.graph.erase_node(node)
    _join_biases(program.graph)
    program.graph.eliminate_dead_code()


def _join_biases(graph):
    """Turns a product whose one reader adds a bias to it into one operation."""
    for node in graph.nodes:
        if node.target is not aten.add.Tensor or not isinstance(node.args[1], torch.fx.Node):
            continue
        view, bias = node.args
        product = view.args[0] if view.target is aten._unsafe_view.default else None
        if product is None or product.target is not aten.mm.default or bias.meta["val"].dim() != 1:
            continue
        if len(view.users) == len(product.users) == 1:
            with graph.inserting_before(node):
                joined = graph.call_function(aten.addmm.default, (bias, *product.args))
                whole = graph.call_function(aten.reshape.default, (joined, view.args[1]))
            whole.meta = node.meta
            node.replace_all_uses_with(whole)


def _returns_its_argument(node):
    if node.target is aten.mul.Tensor and node.args[1] == 1.0:
        return True
    if node.target not in _KEEP:
        return False
    old, new = (n.meta["val"] for n in (node.args[0], node))
    return all(
        getattr(old, name) == getattr(new, name) for name in ("shape", "dtype", "device")
    ) and (old.stride() == new.stride())


def _write_in_place(graph, skip):
    """Writes into caches that come as arguments, where nobody reads the old one."""
    inputs = [node for node in graph.nodes if node.op == "placeholder"][skip:]
    for node in inputs:
        users = [user for user in node.users if user.target is aten.index_copy.default]
        if len(node.users) == len(users) == 1 and users[0].args[0] is node:
            users[0].target = aten.index_copy_.default
