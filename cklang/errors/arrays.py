# SPDX-License-Identifier: MIT
"""Errors of arrays, arguments and their binding."""

from cklang.errors.kinds import Rule, rules

TABLE: tuple[Rule, ...] = rules(
    """
# A: arrays and binding (runtime)
A001 CkTypeError {name} must be an array, not {got}
    = pass a NumPy array, a torch tensor, or anything with DLPack or the array interface;
    = a plain number is legal only for a parameter of rank 0
A152 CkTypeError {name} must be an array or a number, not the text {got!r}
    = pass a number where the parameter has rank 0, 0.5 and not '0.5', else an array;
    = a parameter that takes a text is annotated ck.const[str]
A002 CkTypeError {name} has dtype {dtype}, which no kernel reads
    = dtypes: {known}
A003 CkValueError {name} has dtype {dtype}, whose bytes are in the other order than this machine's
    = pass {name}.astype({name}.dtype.newbyteorder('='))
A004 CkValueError the elements of {name} are not aligned to their size of {size} bytes (address
    {pointer}, byte strides {strides})
    = pass a copy: {name}.copy()
A005 CkValueError {name} requires a gradient, and kernels record none
    = pass {name}.detach(), or call the op under torch.no_grad()
A006 CkTypeError {name} is {what}, whose memory cannot be read in place
    = pass a dense array on the CPU or on an AMD GPU
A007 CkValueError {name}={value!r} does not fit {dtype}: {problem}
    = pass a number that {dtype} holds, or declare another dtype
A010 CkTypeError {op}() is missing {missing}
    = its parameters: {names}
A011 CkTypeError {op}() {problem}
    = {advice}its parameters: {names}
A012 CkTypeError {op}() got {name!r} twice, by position and by name
    = pass it once
A013 CkTypeError {op} has a parameter named {name!r}, which is an option of every call
    = rename the parameter
A020 CkTypeError {name} has dtype {got}, but it is declared {type}
    = pass {fix}
A021 CkTypeError {name} has rank {got} (shape {shape}), but it is declared {type}
    = pass an array with the declared axes; {name}[None] adds one of extent 1, {name}.squeeze()
      takes such axes away
A022 CkTypeError {name} has dtype {got}, but {var} is one of {known}
    = pass {name} in one of these dtypes
A023 CkTypeError {name} has dtype {got}, but {var} is {want}, from {origin}
    = pass {fix}
A024 CkValueError axis {axis} of {name} has extent {got}, but it is declared {want} (shape {shape})
    = pass an array of that extent; an axis that is declared with a dim takes any
A025 CkValueError {dim} is {got} in axis {axis} of {name} (shape {shape}), but {want} in {origin}
    = axes that are declared with one dim are equally long; declare another dim where they may
      differ
A026 CkValueError the arrays of one call must be on one device: {where}
    = move them to one device, or all to the host
A027 CkTypeError {name} is a plain number of dtype {var}, which no earlier array decides
    = pass a rank-0 array, numpy.array(x, dtype)
A028 CkTypeError {name} is {value!r} ({got}), but it is declared {dtype}
    = pass a number of that dtype
A030 CkValueError {name} has no contiguous axis (shape {shape}, strides {strides} in elements)
    = an operand of a product needs stride 1 along its rows or its columns; of a tensor pass
      {name}.contiguous(), of an array numpy.ascontiguousarray({name})
A031 CkValueError {name} has a negative stride (strides {strides} in elements)
    = pass a copy: numpy.ascontiguousarray({name})
A032 CkValueError {name} is not contiguous along its rows (shape {shape}, strides {strides} in
    elements)
    = results are written row by row: the last axis of out must have stride 1
A033 CkValueError the rows of {name} overlap: they start {stride} elements apart and have {columns}
    = pass a contiguous array as out, or none
A035 CkValueError elements of {name} may share memory (shape {shape}, strides {strides} in elements)
    = results need memory of their own for every element
A046 CkValueError axis {axis} of {name} has extent {got} (shape {shape}), but {extent} is {want}
    = {origin}
A036 CkValueError the channels of {name} are not contiguous (shape {shape}, strides {strides} in
    elements)
    = convolutions take channels last: of an NCHW array pass
      numpy.ascontiguousarray(numpy.moveaxis({name}, 1, -1)), of an NCHW tensor
      {name}.to(memory_format=torch.channels_last).permute(0, 2, 3, 1); or write layout="nchw" in
      the op, and a kernel copies such arrays at each call
A040 CkTypeError out has dtype {got}, but the result is {want}
    = pass an out of that dtype, or none
A041 CkValueError out has shape {got}, but the result has {want}
    = pass an out of that shape, or none
A042 CkValueError out is read-only
    = pass an array that may be written, or none
A043 CkValueError out shares memory with {name}, which the kernel reads while it writes out
    = pass an out of its own, or a copy of {name}
A044 CkValueError out is on {got}, but the arguments are on {want}
    = pass an out where the arguments are, or none
A045 CkValueError elements of out share memory with each other (shape {shape}, strides {strides})
    = pass a contiguous array as out, or none
A048 CkValueError out is {got} arrays, but the op gives {want}
    = pass a tuple with one array for each result
A050 CkValueError {name} is not in 2:4 form along axis {axis}: four number {four} at {place} has
    more than two numbers that are not zero
    = legal: at most two of every four; ck.sparse24.prune({name}) keeps the two largest
A051 CkValueError {op} has no one weight to prepare as {name}: second operands of products are:
    {found}
    = legal: a parameter of rank 2 that is the second operand of a product, also transposed; name it
      if there are several: ck.prepare(w, op, 'w')
A052 CkValueError {name} is prepared as the second operand of a product with its K
    axis, and is used elsewhere here
    = pass the weight as it was: {name}.unpack()
A053 CkTypeError {name} has dtype {dtype}, NumPy stores one element per byte, kernels expect two
    = pass ck.pack({name}), made once for many calls
A054 CkTypeError ck.pack takes matrices of 4-bit elements, not rank {rank} of dtype {dtype}
    = legal: ml_dtypes.float4_e2m1fn; ml_dtypes.int4 or any integers from -8 to 7
A055 CkValueError ck.pack takes integers from -8 to 7; these go from {low} to {high}
    = bring them into that range first
A056 CkValueError {name}[{index}] is {got}, but it must be from {low} to {high}: {why}
    = {option} tells the kernel where to read and write; outside this range it would touch the
      memory of other arrays
A092 CkValueError {name} is no scale of a cache: {why}
    = a scale is a number above 0, or f32[1] or f32[G], one for each head, and belongs to a cache of
      8-bit floats
A093 CkUnsupportedError {what} is {value}, must be {bound}
    = make caches of 8-bit floats in the encoding of the GPU: ck.fp8_fnuz and ck.bf8_fnuz on gfx942,
      ck.fp8 and ck.bf8 on gfx950 and gfx1201
A072 CkValueError {name} is read at indices along an axis without elements
    = give it an element, or give no indices
A057 CkValueError the summed axes of {name} are not one axis of memory (shape {shape}, strides
    {strides} in elements)
    = legal: axes that are contiguous with each other, in the order of the other operand;
      a call that is not grouped copies such an array
# A: tensors of torch (runtime, torch)
A081 CkTypeError torch traces a call of {op}, and {name} is {got}, which no custom op takes
    = pass a torch tensor, torch.from_numpy(array); call ops with prepared or packed weights outside
      of torch.compile
A082 CkTypeError {name} is on torch's device meta, where tensors have no memory
    = for the shapes of results alone, call the op under torch's FakeTensorMode; to compute, make
      the tensor on the CPU or on a GPU
A083 CkTypeError {name} has dtype {dtype}, and kernels have no complex numbers
    = pass the real and imaginary parts, torch.view_as_real({name})
A084 CkTypeError {name} is a {kind} tensor, and kernels read dense ones
    = pass {fix}
A085 CkTypeError {name} has the quantised dtype {dtype}
    = pass {name}.int_repr() and the scale as a parameter of the op, or {name}.dequantize()
A086 CkTypeError {name} is on {device}, where kernels do not run
    = pass {name}.cpu(), or a tensor on an AMD GPU, {name}.to('cuda')
A087 CkValueError {op} writes its arguments, and {name} requires a gradient, which torch would not
    record
    = leave out=, or call the op under torch.no_grad()
A089 CkTypeError {name} is a {kind}, which has no memory that can be read
    = calls of ops take it; pass a plain tensor here
# A: attention, its gradients and its caches
A060 CkValueError {name} has dtype {dtype} and shape {shape}, but the result that it is the gradient
    of has {want_dtype} and {want_shape}
    = pass an array like the result
A061 CkValueError {name} has {count} lengths, but the call has {batch} packed sequences
    = {starts} has {entries} entries, one more than there are sequences: pass a length for each
      sequence
A062 CkValueError {name} must be {want} [{extents}], not {dtype} {shape}
    = the arrays of one call agree with k, [B, G, N, D]: B sequences, G heads, D elements of a head
A063 CkValueError k must be [B, G, N, D] of {known}, not {dtype} {shape}
    = pass N new keys of each of B sequences and G heads, of D elements each
A064 CkValueError the pages of v_cache {shape} are not like those of k_cache {keys}
    = block_table numbers the pages of both: give both the same number of pages, of heads and of
      rows of a page
A065 CkValueError {name} is read-only, but the new rows are written to it
    = pass a writeable array
A066 CkValueError {name} is missing: cos and sin are given together or not at all
    = pass both tables, or neither if no rotary embedding is applied
A067 CkValueError cos and sin must be [positions, up to {limit}], both alike, not {cos} and {sin}
    = a row has the angles of one position, one for each two elements of a head
A068 CkValueError {name} is not row-major (shape {shape}, strides {strides} in elements)
    = of a tensor pass {name}.contiguous(), of an array numpy.ascontiguousarray({name})
A069 CkValueError the last axis of {name} is not contiguous (shape {shape}, strides {strides} in
    elements)
    = of a tensor pass {name}.contiguous(), of an array numpy.ascontiguousarray({name}); a cache is
      written in place, so make it with a contiguous last axis
A058 CkValueError out has the shape {shape} and the strides {strides}: the kernel of the result
    writes {wanted}, which no strides give there
    = fix: pass a contiguous array as out, or none
A070 CkValueError a sequence of k and q has {need} rows, and there is room for {limit}: {why}
    = pass fewer new rows, or longer caches and tables of angles
A073 CkValueError {op}.captured records launches on memory of a GPU, but its arrays are in host
    memory: {names}
    = copy them once, x = ck.to_device(x), and put new contents there before a replay:
      ck.to_device(array, out=x)
A074 CkValueError out has dtype {got} and shape {shape}, but the array has {want} and {want_shape}
    = pass out=ck.empty(array.shape, array.dtype), row-major in the memory of a GPU
A071 CkValueError {name}={value!r} describes no array
    = write ck.f16[64, 128], or (shape, dtype), or (shape, dtype, strides in elements), in numbers:
      ((64, 128), 'f16')
A075 CkValueError {name} is read-only, but the op writes its result into it
    = pass a writeable array
A076 CkValueError {name}, into which the op writes its result, shares memory with {other}
    = pass arrays that do not overlap, such as a copy of {other}
A077 CkValueError out= is not taken by an op that updates {name} in place
    = call it without out=: the result is {name}, other results are new arrays
A078 CkValueError {count} elements of {name} are wanted along axis {axis}, which has {extent}
    = pass a longer axis, or write a smaller k
A079 CkValueError {count} of {extent} elements of {name} are wanted in order; kernels sort {limit}
    of them
    = legal: sorted axes of up to 4096 elements, and k up to 2048 of longer ones
# A: the backend of torch.compile
A130 CkValueError {got} workgroups of each launch are to be recorded
    = at least 1: ck.profile(workgroups=8)
A131 CkValueError launches of this process are being recorded already
    = call ck.predict, ck.bench and ck.profile outside of ck.profile and emulator.timing
A132 CkValueError {name} is {got}, must be {bound}
    = for example ck.bench(op, x, w, warmup=3, rounds=5, iterations=20)
A133 CkValueError caches={got!r} is nothing that launches find in the caches
    = one of {known}: what another such launch leaves, nothing, or what those before leave
A134 CkValueError what is to be predicted launched nothing on an emulated GPU
    = launch kernels in it, and wait for them; a HIP program must be compiled for the GPU that it
      runs on: cklang hipcc --offload-arch=gfx942
A090 CkValueError torch.compile(..., backend="cklang") has no option {name!r}
    = options: {known}
A091 CkTypeError option {name!r} of torch.compile(..., backend="cklang") is {got!r}, not a {want}
    = for example options={{"device": "emu:gfx942", "reference": True}}
A150 CkValueError option saved={got!r} of torch.compile(..., backend="cklang") is none of {known}
    = write options={{"saved": "auto"}} for what is predicted quicker
A151 CkValueError torch is to trace a call of {op}, which has {got} arguments: its dispatcher takes
    {most}
    = call the op outside of what torch traces or transforms, or join arguments of one shape:
      ck.stack reads them from one tensor, x[0], x[1], ...
"""
)
