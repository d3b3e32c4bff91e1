"""What the codes of problems mean: the words of `ingot explain`."""

__all__ = ["EXPLAIN"]

EXPLAIN: dict[str, str] = {
    "aliased-outputs": (
        "Outputs of a traced function share memory with one another or with an input in a way"
        " that cannot be made again outside of the compiled graph. Return clones of them."
    ),
    "ambiguous-parameter": (
        "Several parameters end in this name. A parameter may be called by the end of its path"
        " where that is unique: write as much more of it as tells which is meant."
    ),
    "axes-differ": (
        "Values on two different axes, such as slip systems and cells, meet where one axis is"
        " expected. Axes never become one because they happen to have the same number of entries;"
        " rename an input, so that values of one axis meet values of the same."
    ),
    "bad-expression": (
        "An expression of the input file cannot be read: a bracket or an operand is missing, or it"
        " uses a name that is neither an input, a constant nor a symbol. The message gives line and"
        " column within the expression. x y z kx ky kz k2 t i pi e need extra_symbols = true."
    ),
    "batch-reduction": (
        "A sum or mean over points (SR2DynamicSum, SR2DynamicMean) reads the whole batch, where"
        " points are independent otherwise. A model is cut there: what lies between such sums runs"
        " points apart, by every back end, with derivatives along a direction and adjoints. Neither"
        " a solve nor a derivative block by the inputs of one point can look through it. Its axis"
        " must be one of the batch's, and a sum meets other values only where no axis of the batch"
        " is left of it."
    ),
    "batched-constant": (
        "A constant with a batch axis is used inside a law, where only one point is known. Make"
        " it a parameter of the law: parameters may vary over the batch."
    ),
    "batches-crossed": (
        "Values for as many points have batch shapes that only broadcast, such as (5, 1) and (5,):"
        " each is combined with each, to 25 points. That may be meant; where it is not, give all"
        " values one batch shape."
    ),
    "batches-differ": (
        "The batch shapes of two values do not broadcast: aligned from the right, each pair of"
        " sizes must be equal, or one of them 1. Give every input and every batched parameter the"
        " same batch shape, or none."
    ),
    "broken-checkpoint": (
        "A checkpoint is a folder that a run stores with --checkpoint-every and goes on from with"
        " --restart. This one cannot be read, or several were found; name one that is whole."
    ),
    "broken-history": (
        "An update whose steps may be taken in parts (max_substepping_level) reads x~2 of an"
        " unknown x, but not x~1, which x~2 becomes in the second part. Read both, or leave the"
        " option out."
    ),
    "broken-package": (
        "A package lacks a file, or one of its files is not the one that was compiled: it was"
        " edited, cut short in copying, or mixed with another. Copy it whole, or compile it again."
    ),
    "checkpoint-differs": (
        "A run goes on from a checkpoint only on the grid, in the precision and with the fields and"
        " outputs it was stored with. Other options may change, which is warned of."
    ),
    "checkpoint-files": (
        "A run that goes on adds to the files that it was writing. They must lie in the folder of"
        " the run, as they were or longer: what came later is taken out of them. A file that"
        " another run has written since is refused."
    ),
    "circular-computes": (
        "Computes of a group wait for each other's results, so none can run first; or a group"
        " contains itself. Let one of them write to another buffer, and hand its content on after"
        " each evaluation with forward_buffer and forward_buffer_new of the solver."
    ),
    "circular-include": (
        "A file includes itself, directly or through the files it includes. Remove one of the"
        " !include lines of the circle."
    ),
    "circular-model": (
        "A model contains itself, or models of one composition wait for one another's outputs."
        " Break the circle with an old value such as x~1, or solve it with an ImplicitUpdate."
    ),
    "circular-substitution": (
        "The value of a field refers to itself through ${...}, directly or through other fields."
        " Give one field of the circle a plain value."
    ),
    "circular-tensor": (
        "The expression of a [Tensors] entry refers to itself, directly or through other entries."
        " Give one entry of the circle a value of its own."
    ),
    "circular-tests": (
        "Tests wait for one another through their 'prereq' options, so none of them can be first."
        " Remove one name from one of them."
    ),
    "compiler-failed": (
        "The C++ compiler refused code that Ingot wrote, which is a bug of ours or a very old"
        " compiler, or it was killed, mostly since memory ran out: then give fewer `--jobs`."
        " Report it with the model; `ingot run --backend interpret` runs it without a compiler."
    ),
    "compute-failed": (
        "A compute or a postprocessor of a simulation was given fields that do not go together: a"
        " field of the grid has nx x ny x nz entries, a spectrum fewer along its last axis, and"
        " only the latter is complex. Transform one of them, or spread a result with expand = REAL"
        " or RECIPROCAL."
    ),
    "double-backward": (
        "A joint graph, or a package, holds a function and its first derivatives. A second"
        " differentiation, by create_graph=True or by a gradient of a gradient, would need the"
        " graph of the backward's gradient. Differentiate the source function twice instead."
    ),
    "duplicate-block": (
        "Two blocks of one section have the same name, so a reference to that name could mean"
        " either. Rename one of them, or write all options in one block. A section itself, such as"
        " [Models], may be written several times."
    ),
    "duplicate-field": (
        "A field is set twice in one block. Remove one of the two lines, or write 'name := value'"
        " in the later one to say that it replaces the first. On the command line an override of a"
        " field that the file sets is also written with ':='."
    ),
    "duplicate-variable": (
        "A variable is given a value twice by one driver. Remove one of the two; the time is"
        " given by 'prescribed_time' alone."
    ),
    "extents-differ": (
        "Two values that meet along one axis have different numbers of entries there. Correct the"
        " shape of one of them, or what [Settings] declare for it."
    ),
    "file-not-found": (
        "An input file, or a file that it includes, does not exist or cannot be opened. Paths"
        " after !include are relative to the folder of the file that includes them."
    ),
    "fixed-part": (
        "A live model is wired once, when it is built, and a part of it was to be replaced or"
        " deleted. Parameters may be given other values; for another part build another model, from"
        " the same file with overrides."
    ),
    "fixed-size": (
        "A size that was to stay open is fixed by the function, by another tensor that it"
        " meets, or by an example of size 0 or 1, which torch takes for a constant. Leave it out"
        " of 'dynamic', or trace with a larger example."
    ),
    "foreign-files": (
        "A package, a checkpoint or a .zarr folder was to be written where something else lies,"
        " which would be lost: it replaces only what is empty, and what is of its own kind with no"
        " other files in it. Give another folder, or move away what lies there. A package whose"
        " metadata cannot be read is not known for one: delete it first."
    ),
    "graph-differs": (
        "A graph that torch compiled does not compute what the model says, at points where both"
        " were tried before it was kept. This is a fault of torch, of the C++ compiler or of"
        " Ingot; report it with the model. The kernel backend compiles the model meanwhile."
    ),
    "hdf5-threads": (
        "Marlin writes every output of fields in a thread of its own, and stops where several of"
        " them write HDF5 with a library that is not made for that. So does a run with"
        " marlin_compatible = true. Ingot writes them one after the other: with"
        " marlin_compatible = false in [Problem] they just work, and so does a single HDF5 output."
    ),
    "hidden-parameter": (
        "A traced function uses a tensor that asks for a gradient and is neither an argument"
        " nor a parameter of a module, so that its gradient would be lost. Pass it as an"
        " argument, or trace a module that holds it."
    ),
    "history-given": (
        "A name such as x~1 is given a value by a driver. Histories are kept by the driver"
        " itself: prescribe x, or give x an initial value, and x~1 follows."
    ),
    "interrupted": (
        "Somebody stopped the run. The files that it has written hold all steps up to there; with a"
        " checkpoint it can go on: ingot run FILE --restart FOLDER."
    ),
    "kinds-differ": (
        "A value is of another kind than the place it is used in, for example a Scalar where an"
        " SR2 is read. Wrap it in the right kind, or rename one of two variables that share a"
        " name."
    ),
    "law-failed": (
        "The function of a law raised an error while it was traced. The message says what it"
        " could not do; check the options and the kinds of what the block reads."
    ),
    "loose-convergence": (
        "A solve without a predictor starts from zero, where the residual is large, and rel_tol"
        " accepts a part of that: far more than abs_tol. Peers accept it silently, and results were"
        " 10 % off. Let the update start from old values with `guess = old`, give it a predictor,"
        " or lower rel_tol."
    ),
    "lost-history": (
        "A model reads an old value such as plastic_strain~1, and nothing carries the variable"
        " from step to step: the driver keeps what it prescribes and what the model gives. So the"
        " old value is zero at every step, as NEML2 has it too. Name the variable in"
        " additional_outputs of the composed model, or prescribe it."
    ),
    "lost-step": (
        "A model reads times by what they differ by, and in its precision two of them differ by"
        " something else than was given: float32 holds seven digits, so that at 1000 s a step of"
        " 1e-5 s is none. Rates would be wrong, and a step of zero elastic. Compile the model with"
        " --dtype float64, take longer steps, or let the time begin nearer to zero."
    ),
    "many-outputs": (
        "A parameter refers to a model that has several outputs. Write model.output to say which"
        " one."
    ),
    "missing-block": (
        "A block is named, but no section of the right kind holds a block of that name. The name"
        " is what stands between the square brackets."
    ),
    "missing-input": (
        "A compiled model was called without one of its inputs. Give every input that"
        " `ingot inspect` lists, by name."
    ),
    "missing-option": (
        "A block, or a call in Python, lacks an option that it cannot do without. Add the option."
    ),
    "missing-output": (
        "A test compares a file that its run did not write. Check the outputs and the file_base"
        " of the input, and the name in the test."
    ),
    "missing-variable": (
        "A unit test must give a value to every input of its model, histories such as x~1"
        " included. Add the variable to the list of its kind."
    ),
    "mutated-gradient": (
        "A traced function writes in place to a parameter or argument that asks for a gradient,"
        " outside of torch.no_grad(). Write to a clone of it."
    ),
    "nested-solves": (
        "An ImplicitUpdate stands inside the residuals of another, and that one inside those of a"
        " third. One level is solved, with exact derivatives; more are not. Let the unknowns and"
        " residuals of two of them be those of one equation system. Or one stands inside another"
        " and the steps of one of them are taken in parts: leave its max_substepping_level out."
    ),
    "no-cache": (
        "What is compiled is kept in $XDG_CACHE_HOME/ingot, or in ~/.cache/ingot, for the next"
        " process. It cannot be written there now, so that it is kept in a temporary folder, or not"
        " at all: results are the same, but the next process compiles again."
    ),
    "no-compiler": (
        "The kernel backend writes C++ and compiles it, but no compiler was found, or the one that"
        " was found does not run. Install g++; `ingot run --backend interpret` computes without a"
        " compiler, and `ingot compile` needs one."
    ),
    "no-cuda-compiler": (
        "Kernels of a GPU are compiled by NVRTC, which a torch with CUDA brings along. Without one"
        ' install it alone, `pip install "ingot[cuda]"`; no GPU is needed to compile.'
    ),
    "not-by-parts": (
        "Ranks hold parts of a box, and a compute of yours gave a part other numbers than the same"
        " part of the whole. A mean, a sum or a maximum of what one rank holds is not that of the"
        " field: use those of the space it is given (space.mean, space.sum, space.largest,"
        " space.roll), or run it by one process. The first two calls are compared."
    ),
    "rank-lost": (
        "One of the processes that share a box ended, and a run cannot go on without its part. What"
        " it said last is shown. The last checkpoint is whole, since one is put in place only when"
        " every rank has written its part: go on with --restart, by as many ranks or by others."
    ),
    "singular-law": (
        "A law gives infinite or undefined numbers whatever it reads, because of its parameters: an"
        " incompressible solid, nu = 0.5, has no bulk modulus that Hooke's law could use. Change"
        " the parameter that is named, 0.499 for 0.5, say."
    ),
    "task-too-large": (
        "A kernel of a GPU is told where each of its inputs, outputs and solves lies, by value, and"
        " CUDA takes 32 764 bytes of that. Ask for fewer derivatives, or run it on a CPU."
    ),
    "no-memory": (
        "The memory of this machine ran out in a call of a package from C++: what it gives holds"
        " nothing of use. Give fewer points at a time."
    ),
    "no-device-memory": (
        "A call of a kernel found no memory on the GPU for its outputs and reports, or its code"
        " found none at load. Nothing was computed, and other calls go on. Give it fewer points or"
        " steps at a time, or free what the GPU holds: torch.cuda.empty_cache() gives back what"
        " torch keeps for later."
    ),
    "old-driver": (
        "NVIDIA's driver is older than the code, or than the CUDA of this torch. Install a newer"
        " driver. PTX alone asks for a driver as new as the NVRTC that wrote it; machine code"
        " (--cuda-arch and the architecture of the GPU) runs on any driver of the same major CUDA."
    ),
    "no-derivatives": (
        "A derivative was asked of a package that does not hold it. Pairs are chosen when"
        " compiling: add -d OUT:IN for this pair, or -d : for all. Gradients alone (vjp, param_vjp,"
        " backward) take --train instead, which compiles adjoints of everything."
    ),
    "no-device": (
        "A run is to take place on a device that this machine, or this build of torch, does not"
        " have. A model runs on the CPU unless --device says otherwise. For a simulation"
        " device_names in [Domain] comes before --device, and that before the environment's"
        " MARLIN_TORCH_DEVICE; without any of them it runs on a GPU if there is one, else on the"
        " CPU."
    ),
    "no-gradient": (
        "A tensor that asks for a gradient is passed where none was compiled, or where none is"
        " passed on: a joint traced with an example that does not ask for one, a transient, the"
        " derivatives of an artifact. Trace with requires_grad=True; else pass a detached tensor,"
        " or call under torch.no_grad()."
    ),
    "no-signature": (
        "A joint that was traced with several examples runs a call by the first that it is like: in"
        " how the arguments are nested, their types, devices and sizes. This call is like none, and"
        " the message tells for each why. Change the call, or add an example of it to examples=."
    ),
    "no-law": (
        "A Python file of --load was run, and no law joined the catalogue. A law is a function"
        " under @model(gives=...); one that is imported by the file counts too."
    ),
    "no-stub": (
        "A file was loaded as a stub, but it does not hold exactly one model of type AOTIModel."
        " Load the package's folder, or the stub that `ingot compile` wrote beside it."
    ),
    "no-trial": (
        "A state of a host was committed without an update, or twice after one. Call update with"
        " the values of the step first; commit once the step has converged."
    ),
    "no-transform": (
        "A compute needs a Fourier transform, which parallel_mode = REAL_SPACE does not have."
        " Choose another mode, or computes that work on the grid, such as"
        " FiniteDifferenceLaplacian."
    ),
    "opaque-model": (
        "A part of the model is opaque: a compiled package (AOTIModel), or a law declared with"
        " opaque=True. It is called for all points at once, between kernels or graphs of the lines"
        " around it, by every back end; an implicit update that holds one is solved by torch. No"
        " package holds it: to compile the model, put the one that the package was compiled from in"
        " its place, or write the law with ingot.types."
    ),
    "python-state": (
        "A call sets a Python attribute, a list or a global, which a captured graph would not do"
        " again. Keep what changes in a buffer of fixed shape, or return it; an attribute that is a"
        " tensor, and stays one of the same shape, is followed."
    ),
    "writes-argument": (
        "A compute or a postprocessor of a simulation is a function of its arguments: it returns"
        " new tensors. One that writes into an argument, or into a tensor that it keeps, would"
        " change buffers, old states and other computes' inputs behind their back."
    ),
    "wrong-ranks": (
        "The box cannot be cut among so many ranks: each needs a row of cells along the axes that"
        " are cut, and the cells that a difference or a stream reads of its neighbours. What needs"
        " the whole box, such as displacements of nodes, is for one rank, too."
        " parallel_mode = NONE cuts nothing, so that it is for one rank."
    ),
    "wrong-result": (
        "A compute returns a tensor for each buffer that it writes: the axes of the grid or of the"
        " spectrum first, each with all its cells or with one where the field is constant along it,"
        " components behind. A postprocessor returns one number."
    ),
    "step-too-small": (
        "A step of a host failed, and so did all shorter ones, down to the smallest that was"
        " allowed. Look at the load and at the points that fail (update.failed of the state); the"
        " body may have no equilibrium there, as past a maximum of a prescribed force."
    ),
    "step-cut": (
        "The solver of a simulation did not converge in some steps, which were taken again with a"
        " smaller size; with ConstantDT the size then grows back to dt by growth_factor a step."
        " The run ends earlier than num_steps * dt says."
    ),
    "unknown-buffer": (
        "A solver names a buffer that no compute writes and [TensorBuffers] does not declare, so"
        " that it would move a field by zeros."
    ),
    "idle-option": (
        "An option is set that changes nothing: Ingot reads it for the sake of files that have it,"
        " or another option of the block leaves it no part to play. Leave it out, or set what it"
        " belongs to; --strict makes this an error."
    ),
    "unused-override": (
        "An override sets a variable that no ${...} of the file refers to, or an option of a block"
        " that the file does not have and nothing names, so it changes nothing. Often the name is"
        " misspelt. Mend it, or leave the override out; --strict makes this an error."
    ),
    "reference-quirk": (
        "A compute, a solver or a postprocessor does something as Marlin does, so that files give"
        " the numbers they gave, and the mathematics asks for something else. marlin_compatible ="
        " false in [Problem], or in the block of a compute alone, is the corrected form; --strict"
        " makes this an error."
    ),
    "unwritten-buffer": (
        "A compute, a postprocessor or an output reads a buffer that nothing writes, or a solver"
        " moves one that nothing starts or reads: Marlin's files may, and it holds zeros. Mend the"
        " name, or declare the buffer in [TensorBuffers]; --strict makes this an error."
    ),
    "not-converged": (
        "The solve of an implicit update did not reach its tolerance at some points, whose"
        " results are NaN from that step on. Take smaller time steps, raise max_its, or give a"
        " better predictor; max_substepping_level of the update lets it halve steps by itself. The"
        " file under failed/ repeats the worst point alone, and `ingot diagnose` of it, or of the"
        " file that was run, tells which equation fails, why, and what helps. Of FFTMechanics: no"
        " equilibrium was found, or, as a warning, conjugate gradients stopped at l_max_its."
    ),
    "not-written": (
        "A model can be used, and no input file says the same: a tensor that a crystal computes was"
        " set by hand, the model was put together without a law, ingot.compose or ingot.implicit,"
        " or its law was declared again by a cell that ran twice: its name means the new one in"
        " files and pickles. to_hit() writes what a file can hold, or nothing."
    ),
    "not-ascending": (
        "The abscissas of a table descend somewhere. A table is searched for the segment of its"
        " argument as if they ascended, so it gives other values than those between its knots."
        " NEML2 takes such a table silently, and so it is run; sort its rows. --strict makes this"
        " an error."
    ),
    "not-finite": (
        "Every solve converged, and yet an output or a field holds infinity or NaN: a law divides"
        " by zero, takes a root or a power of a negative number, or overflows, or an explicit step"
        " is too large. Look at the inputs of the step that the message names. Of a value that is"
        " given, it is told before the run: its own numbers are NaN or infinite."
    ),
    "sweep-differs": (
        "The place that a sweep would write to holds something else: another sweep, one that was"
        " cut otherwise, one that runs at this moment, or files of another program. A sweep goes on"
        " only where model, values, outputs and steps are what they were."
    ),
    "worker-failed": (
        "A process that computed a part of a sweep, on this machine or on a cluster, failed, or"
        " several died at the same part one after the other. What was computed before is in the"
        " data set: the same command goes on from there."
    ),
    "not-installed": (
        "A package that is needed for this alone is not installed. Install it as the message says."
    ),
    "nothing-checked": (
        "A test has nothing to compare, and a test that compares nothing does not pass. List at"
        " least one output, or name a file with a ModelUnitTest, a TransientRegression or a"
        " Verification."
    ),
    "number-like": (
        "A word that begins as a number does, such as 150MPa, 1,5 or 0x10, stands where a number"
        " or the name of a variable may stand. It is no number, and as a name it would be a"
        " variable that nothing gives, which is zero. Write the number alone, in the units of the"
        " file."
    ),
    "other-defaults": (
        "A compiled graph makes tensors of torch's default type or device, or its source asks"
        " whether gradients are recorded, and it was traced while that was another one. Call it as"
        " it was traced, or name the type and device of new tensors in the source and trace it once"
        " more."
    ),
    "parse-error": (
        "The text is not HIT. A block begins with [name] and ends with []; a field is name ="
        " value; a value of several words stands in quotes; text that holds quotes or # stands"
        " between three quotes; a comment begins with #."
    ),
    "program-too-long": (
        "A program would have more lines than can be compiled in reasonable time. Shorten an axis"
        " or split the model; the message names what is long."
    ),
    "ragged-csv": (
        "A line of a CSV file has another number of values than its header. Correct that line."
    ),
    "random-operation": (
        "A traced function draws random numbers in a way that cannot be done before the"
        " compiled graph runs: from a generator of its own, or by numbers that depend on values."
        " Use rand, randn, dropout and their kin."
    ),
    "region-argument": (
        "What was given to compile a module by its blocks cannot be used: the example holds"
        " tensors, numbers, words and None; dynamic= is a dictionary from axes to names, one for"
        " all tensors or one for each; a block reads sizes that vary from the shapes of its"
        " tensors."
    ),
    "region-block": (
        "What was named as a block is not a module below the one that is compiled, or not a module"
        " class. Give a class, a list of modules, or the word auto."
    ),
    "repeated-solve": (
        "The body of a repeat holds an implicit update, which would be solved at every step of the"
        " loop. Let the update be solved before it, or make what is repeated unknowns of its"
        " equation system."
    ),
    "reshaped-input": (
        "A traced function gives a parameter, buffer or argument another shape or type in"
        " place. Only numbers may be written to what a call is given."
    ),
    "reverse-through-solve": (
        "The gradient of an inner model is asked for, but that model holds an implicit update."
        " Move the update out of the inner model."
    ),
    "run-differs": (
        "A test wants a run to stop with an error, or to print or not to print some words, and it"
        " did otherwise. Change the input, or what the test expects."
    ),
    "second-derivative": (
        "The derivative of an implicit update, or of a package or law that is opaque, is"
        " differentiated once more, which is not supported. Differentiate the residual model"
        " instead, and write the opaque part as laws."
    ),
    "shapes-differ": (
        "A value has another shape than the place it is given to: another number of steps, or"
        " other structural axes. Prescribed values begin with a step axis as long as"
        " 'prescribed_time'; structural axes are marked by sub_batch_ndim and, where declared,"
        " must be those of [Settings]."
    ),
    "shared-memory": (
        "Two tensors of a call share memory and the function writes to one of them; a compiled"
        " graph would see the old values in the other. Pass a clone of one."
    ),
    "singular-system": (
        "The equations of an implicit update cannot determine their unknowns, whatever the values:"
        " an unknown enters no residual, or two residuals are the same. Check which unknowns and"
        " residuals the equation system pairs, and that each unknown is read by its residual."
    ),
    "stage-empty": (
        "A joint or backward graph is there only where something needs a gradient: set"
        " requires_grad in the example, or in a parameter."
    ),
    "stage-example": (
        "To show what Ingot makes of a torch function it must be traced. Its arguments stand beside"
        " it in the module, under the name of the function followed by _example: a tuple, a"
        " dictionary, one tensor, or a function that gives them."
    ),
    "stage-not-kept": (
        "A package of torch graphs holds its signature, the text of the graphs that were compiled,"
        " and the compiled code with its sources; what lay between is not kept. Show the stage of"
        " the function or module instead."
    ),
    "stage-target": (
        "The stages of torch are shown for a Python function or module, written module:function,"
        " that can be imported from the current folder and that Ingot can trace and compile, or for"
        " the folder of a package of ingot.train or ingot.regions."
    ),
    "tensor-expression": (
        "The Python expression of a [Tensors] entry raised an error. It may use torch, math, np,"
        " the kinds and functions of ingot.types, and the other entries by name; several"
        " statements must assign 'result'."
    ),
    "tensor-subclass": (
        "Compiled graphs take plain strided tensors. A subclass (also a fake, sparse or nested"
        " tensor) would lose what makes it special. Convert it first."
    ),
    "too-much-memory": (
        "The fields of a simulation would take more memory than the device has left. Cells, the"
        " type of numbers, buffers and their old states are counted before anything is allocated;"
        " what a step needs on the way comes on top. Give fewer cells, or floating_precision ="
        " SINGLE in [Domain], or share the box among several GPUs or machines by --ranks."
    ),
    "traced-part": (
        "A joint or package was traced from a module, and something was set on it that its"
        " compiled graph cannot follow: another child, number or method, a hook below the whole,"
        " a hook of all modules. Tensors may be replaced by others of their kind, and hooks set"
        " on the whole; for the rest edit the source module and trace it once more."
    ),
    "time-descends": (
        "The times of a transient made in Python go back from one step to the next. Rates would"
        " change their sign there, and solves that divide by the length of a step give other"
        " results than were meant. Equal times are taken: such a step changes nothing but its"
        " inputs."
    ),
    "two-providers": (
        "Two models of one composition, or two that stand in for parameters of one law, give an"
        " output of the same name, so a reader of that name could mean either. Rename one output,"
        " or leave one model out."
    ),
    "unknown-axis": (
        "A law works along an axis that none of its arguments has. Name the axis in a kind of its"
        " signature, such as Scalar['slip']."
    ),
    "unknown-block": (
        "A block holds a sub-block that its type does not know. Nothing in a file is silently"
        " ignored, so remove the sub-block or correct its name."
    ),
    "unknown-code": (
        "`ingot explain` was asked for a code that no error has. The code is what stands between"
        " the brackets of error[...]."
    ),
    "unknown-column": (
        "A CSV file has no column of the name that a [Tensors] entry asks for. Component names"
        " are made from 'variable' by suffixes such as _xx; 'column_names' lists them one by one."
    ),
    "unknown-constant": (
        "An option holds a name where a number is expected, and no constant of that name is"
        " declared. Declare it with scalar_constant_names and scalar_constant_values in [Problem],"
        " or write the number."
    ),
    "unknown-ending": (
        "How a result is written and read is said by the ending of its file: .csv and .parquet are"
        " tables with a row for each step and point, .npz, .h5 and .zarr hold an array for each"
        " variable, .pt and .pth every value under its name and step."
    ),
    "unknown-extent": (
        "An unknown of an implicit update lies on an axis, but nothing says how many entries it"
        " has. Declare it in [Settings]/example_batch_shape, or give the unknown an initial value"
        " with structural axes."
    ),
    "unknown-input": (
        "A block names an input that the model does not have. `ingot show FILE MODEL` lists its"
        " inputs and outputs."
    ),
    "unknown-name": (
        "A pair or a new name refers to an input, output or parameter that the model does not have,"
        " or a variable or component was asked of a result that it does not hold. `ingot show FILE"
        " MODEL` lists those of a model, where parameters must be promoted with -p first; a result"
        " shows its own when it is printed."
    ),
    "unknown-option": (
        "A block sets an option that its type does not have, or a call in Python gives an argument"
        " that is not there, most often a misspelling. Nothing is silently ignored: correct the"
        " name, or remove the option."
    ),
    "unknown-output": (
        "A block names an output that the model does not have. `ingot show FILE MODEL` lists its"
        " inputs and outputs."
    ),
    "unknown-parameter": (
        "No parameter has this name. Parameters are named by their path through the model, as"
        " `ingot show FILE MODEL` prints them, by what NEML2 calls them, or by the end of either;"
        " those of a package are the ones promoted with -p."
    ),
    "unknown-section": (
        "A top-level block has a name that is no section, most often a misspelling. Nothing in a"
        " file is silently ignored, so remove the section or correct its name."
    ),
    "unknown-type": (
        "The 'type' of a block names nothing that Ingot or the loaded extensions provide."
        " Correct the name: `ingot syntax` lists all types, `ingot syntax TYPE` tells about one."
        " A law of one's own is declared with @model in a Python file, which --load FILE.py names,"
        " or a Python session imports."
    ),
    "unknown-update": (
        "'solvers' of an AOTIModel gives rules to an implicit update that the package does not"
        " have. `ingot inspect PACKAGE` lists its updates, each with its rules."
    ),
    "unknown-variable": (
        "A driver or [Settings] names a variable that the model does not have. `ingot show FILE"
        " MODEL` lists its inputs and outputs."
    ),
    "unprescribed-input": (
        "An input of the model is given by no model, not prescribed by the driver and no first"
        " guess of a solve, so it is zero at every step, as NEML2 has it too. Often it is a"
        " misspelt name: outputs and inputs are wired by equal names. Prescribe it, or correct"
        " the name; --strict makes this an error."
    ),
    "unread-value": (
        "A driver gives an initial value to a variable whose old value the model does not read,"
        " so it has no effect but to be stored with step 0. Correct the name, or leave it out."
    ),
    "unreadable-reference": (
        "The reference of a TransientRegression is no file that torch can read, or holds"
        " something else than tensors by name. Write it again with 'save_as' of a TransientDriver."
    ),
    "unreadable-result": (
        "A file of results cannot be read. That of a transient is written by `ingot run --save`;"
        " a .pt file of NEML2 does not say what kinds its numbers are. What a simulation"
        " writes with XDMFTensorOutput is an .xmf file that names the files with the numbers: keep"
        " them in one folder, and give the .xmf file or the folder."
    ),
    "unresolved-substitution": (
        "A ${...} cannot be replaced by a value. ${name} and ${path/to/field} are looked up from"
        " the top of the file, also after overrides such as name:=value (in MOOSE's files, from the"
        " blocks around first); ${fparse 2*pi*L} computes, ${units 1 mm -> m} converts, ${env NAME}"
        " is an environment variable, ${raw a b} joins its words."
    ),
    "unsaveable": (
        "A half of a joint was compiled by a callable of the user's, and how to write that to a"
        " file is not known. Compile it by 'inductor' or 'eager' to save it; what holds graphs"
        " inside, as torch.cond makes them, by 'inductor'."
    ),
    "untied-parameter": (
        "Parameters that were one tensor under several names when a module was traced have become"
        " different tensors, and the compiled graph takes only one. Replace the tensor under all"
        " its names."
    ),
    "unnamed-part": (
        "Compiled graphs take steps in parts (max_substepping_level) by the names of what an"
        " update reads. Here a force or an old value is a constant, has another shape than what it"
        " becomes, or is one value with two meanings. Compile with --backend kernel, which has no"
        " such limit."
    ),
    "untraceable": (
        "A law does something that a program for one point cannot hold: it reads a value (if,"
        " float), indexes by one, writes in place, or calls a torch function that has no"
        " counterpart. Use where(...) and the functions of ingot.types; a law that must stay"
        " ordinary torch, such as a trained module, is declared with @model(opaque=True)."
    ),
    "untraceable-function": (
        "A function's course depends on the values of tensors (if, while, item, boolean"
        " indexing), or it does something that torch cannot trace. Use torch.where and masks, or"
        " torch.while_loop."
    ),
    "untrusted-code": (
        "Under --untrusted the Python of a file may compute numbers and nothing else: listed"
        " syntax and names, with bounds on sizes, powers and time. Compiled packages, TorchScript"
        " files and modules that a file names are not opened, and results are written below the"
        " working folder only. Leave --untrusted out for files that you trust."
    ),
    "unusual-value": (
        "A parameter is a number that it cannot be by its meaning: a negative Young modulus, a"
        " Poisson ratio of 0.5 or more. NEML2 takes any number silently, and so it is run, but"
        " such a solid gives way instead of resisting, and solves may find anything. Correct the"
        " number. --strict makes this an error; presets refuse it always."
    ),
    "unwritable": (
        "A file cannot be written: the folder is not there or may not be written to, or the disk is"
        " full. What was there before is kept. A run writes to the working folder, or to where"
        " file_base says; a compiler also needs room in the temporary folder (TMPDIR)."
    ),
    "values-differ": (
        "A result differs from what is expected by more than atol + rtol * |expected|. The"
        " largest absolute and relative errors of each value are listed."
    ),
    "which-model": (
        "A file that is no stub is loaded by the name of one of its models, as in"
        " ingot.load(file, name='model')."
    ),
    "which-driver": (
        "The command needs one driver, or one of another type. Name it after the file: `ingot run"
        " FILE DRIVER`."
    ),
    "wrong-call": (
        "A compiled function is called with other arguments than it was traced with: another"
        " number, other names, another nesting, or another value of an argument that is not a"
        " tensor. Only tensors may vary from call to call."
    ),
    "wrong-device": (
        "A package or kernel runs on the device that it was compiled for, and its inputs must lie"
        " there. Move the inputs there."
    ),
    "wrong-dtype": (
        "A package computes in the precision that it was compiled for, and takes inputs of that"
        " precision. Convert the inputs, or compile the model again with --dtype."
    ),
    "wrong-index": (
        "A compiled function was given an index that leads outside of the axis that it indexes. The"
        " message names the operation and the size of the axis. Nothing was written."
    ),
    "wrong-input": (
        "A model takes a dictionary of torch tensors or NumPy arrays by name, and was given"
        " something else; convert lists and single numbers to arrays first. Or a call in Python"
        " gives arguments by place that are taken by name, or one of them twice."
    ),
    "wrong-law": (
        "A function under @model does not say what every argument and result is. Inputs are"
        " positional arguments of a kind (Scalar, SR2, ...), parameters are Parameter[kind], other"
        " keyword arguments are options; the result's kind stands after ->, its name in gives."
        " No two laws have one name, unless one file declares it anew."
    ),
    "wrong-kind": (
        "A law returns a value of another kind than its signature declares. Correct the return"
        " annotation or the body of the law."
    ),
    "wrong-argument": (
        "An argument that says how to trace, partition or compile a function is not one of"
        " those that exist. The message names what it may be."
    ),
    "wrong-autocast": (
        "A function was traced with autocast in one state and is called in another, in which"
        " the source would compute in other types. Call it in the same state, or trace it once"
        " more in the new one."
    ),
    "wrong-backend": (
        "A package holds the backends it was compiled with: a kernel library, torch graphs, or"
        " both. Load one that it holds, or compile with `--backend`. Graphs are for CPUs: torch"
        " compiles them for a GPU only where there is one. A ModelUnitTest of a model that solves"
        " runs by kernel or interpret: graphs hold no derivatives along a direction."
    ),
    "wrong-architecture": (
        "A package for GPUs holds machine code for some architectures, which runs on GPUs of the"
        " same first digit that are as new or newer, and PTX for those yet newer. Compile it again"
        " with --cuda-arch and the architecture of the GPU; `ingot inspect` tells what it holds."
        " NVRTC compiles for those that its version knows."
    ),
    "wrong-level": (
        "A package holds code for CPU levels that this machine does not have, and there is no"
        " compiler to rebuild it from its source. Install g++, or compile the package on a machine"
        " like this one."
    ),
    "wrong-mode": (
        "A module was traced in training or in evaluation mode, which is compiled in: dropout"
        " and batch norm do not change their ways by train() or eval(). Trace the module in the"
        " other mode."
    ),
    "wrong-output": (
        "A traced function returns something that a package cannot hold. Return tensors,"
        " numbers, strings and None, nested in tuples, lists and dicts."
    ),
    "wrong-partition": (
        "A partition of a joint graph names a value that the graph does not hold. Return the"
        " two graphs made from the one given, or names of its nodes."
    ),
    "wrong-package": (
        "What was compiled agrees with itself in no way that a loader takes: two inputs of one"
        " name after --rename-input or --rename-parameter, or an extent of 0. Nothing is written."
    ),
    "wrong-python": (
        "A file of --load is not Python, or running it raised an error, as importing it would. The"
        " place is the last line of the file, or of a module beside it, that led there."
    ),
    "wrong-schema": (
        "The package was written by another version of Ingot, whose metadata is laid out otherwise."
        " Compile the model again with the command that the message shows."
    ),
    "wrong-shape": (
        "An array does not end in the axes and components of its variable. Arrays are shaped"
        " (*batch, *axes, *components): `ingot inspect` tells the last two, the batch is free."
        " Extents of axes (grains, cells) are compiled in: for others compile the model again."
    ),
    "wrong-torch": (
        "Torch graphs run only under the torch version that compiled them. Install that version, or"
        " compile the model again."
    ),
    "wrong-preset": (
        "A preset, given by --load or shipped, does not hold what one needs: a [Preset] with its"
        " section, its doc and a block for each option, then a template of Jinja that writes HIT,"
        " among it a block of the user's name, [{{ name }}]. docs/presets.md shows one."
    ),
    "wrong-umat": (
        "A model that is compiled with --umat reads or keeps something that hosts do not give, or a"
        " host gives it arrays of other sizes. Hosts know strain (or deformation_gradient),"
        " temperature, t, fields that are numbers, and states one step back; --rename-input and"
        " --rename-output name what is called otherwise, and `<name>-umat.inc` in the package tells"
        " the sizes. docs/umat.md shows both."
    ),
    "wrong-usage": (
        "Two options of a command exclude each other, or one of several is needed. `--help` after"
        " the command lists its options."
    ),
    "wrong-value": (
        "The value of a field is not of the kind that the option takes: an integer has no point"
        " and no exponent, a flag is exactly true or false, a list is words separated by blanks"
        " inside quotes, and the rows of a list of lists are separated by ';'."
    ),
}
"""What each code means, one paragraph each, for `ingot explain CODE`."""
