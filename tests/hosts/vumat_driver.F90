! Calls vumat as an explicit host does, for a block of points; WP is the kind of its numbers.
program vumat_driver
  implicit none
  integer, parameter :: wp = WP
  integer :: nblock, ndir, nshr, nstatev, nfieldv, nprops, steps, step, ntens
  real(wp) :: dt, step_time, total_time
  real(wp), allocatable :: props(:), density(:), strain_inc(:, :), spin(:, :), temp_old(:), temp_new(:)
  real(wp), allocatable :: stretch_old(:, :), stretch_new(:, :), gradient_old(:, :), gradient_new(:, :)
  real(wp), allocatable :: field_old(:, :), field_new(:, :), stress_old(:, :), stress_new(:, :)
  real(wp), allocatable :: state_old(:, :), state_new(:, :), energy_old(:), energy_new(:)
  real(wp), allocatable :: inelastic_old(:), inelastic_new(:), coords(:, :), lengths(:)
  character(len=80) :: cmname
  external :: vumat

  read *, nblock, ndir, nshr, nstatev, nfieldv, nprops, steps
  ntens = ndir + nshr
  allocate (props(nprops + 1), density(nblock), strain_inc(nblock, ntens), spin(nblock, nshr))
  allocate (temp_old(nblock), temp_new(nblock), stretch_old(nblock, ntens), stretch_new(nblock, ntens))
  allocate (gradient_old(nblock, 9), gradient_new(nblock, 9), field_old(nblock, nfieldv + 1))
  allocate (field_new(nblock, nfieldv + 1), stress_old(nblock, ntens), stress_new(nblock, ntens))
  allocate (state_old(nblock, nstatev + 1), state_new(nblock, nstatev + 1), energy_old(nblock))
  allocate (energy_new(nblock), inelastic_old(nblock), inelastic_new(nblock), coords(nblock, 3), lengths(nblock))
  cmname = 'MATERIAL'
  stress_old = 0; state_old = 0; energy_old = 0; inelastic_old = 0; temp_old = 0; temp_new = 0
  density = 2; field_old = 0; field_new = 0; gradient_old = 0; gradient_new = 0; spin = 0; total_time = 0
  stretch_old = 0
  stretch_old(:, 1:3) = 1
  call take(props, nprops)
  read *, dt
  do step = 1, steps
    call take(strain_inc, nblock * ntens)
    call take(stretch_new, nblock * ntens)
    total_time = total_time + dt
    step_time = total_time
    call vumat(nblock, ndir, nshr, nstatev, nfieldv, nprops, 0, step_time, total_time, dt, cmname, coords, &
      lengths, props, density, strain_inc, spin, temp_old, stretch_old, gradient_old, field_old, stress_old, &
      state_old, energy_old, inelastic_old, temp_new, stretch_new, gradient_new, field_new, stress_new, &
      state_new, energy_new, inelastic_new)
    call tell(stress_new, nblock * ntens)
    call tell(state_new, nblock * nstatev)
    call tell(energy_new, nblock)
    stress_old = stress_new; state_old = state_new; energy_old = energy_new; stretch_old = stretch_new
  end do
contains
  subroutine take(x, n)
    integer, intent(in) :: n
    real(wp), intent(out) :: x(*)
    integer :: i
    real(8) :: number
    do i = 1, n
      read *, number
      x(i) = real(number, wp)
    end do
  end subroutine
  subroutine tell(x, n)
    integer, intent(in) :: n
    real(wp), intent(in) :: x(*)
    integer :: i
    do i = 1, n
      print '(es25.17e3)', x(i)
    end do
  end subroutine
end program
